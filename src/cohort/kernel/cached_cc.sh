#!/bin/sh
# A compiler behind ccache: sh cached_cc.sh gcc ... FILE. Kernel make says which headers a file needs;
# with CCACHE_DEPEND, ccache believes that and does not preprocess a file that it does not have, half
# of a compilation more. What .incbin brings in stands in no list of headers: such a file, and any
# that is no C, is preprocessed.
for file; do :; done
case $file in
*.c) grep -qs incbin "$file" || export CCACHE_DEPEND=1 ;;
esac
exec ccache "$@"
