# Compiles the source $1 and runs the program under what $UNDER says.
set -eu
case $1 in
    *.rs) rustc -O -o program "$1" ;;
    *.hs) ghc -v0 -O -threaded -outputdir objects -o program "$1" ;;
    *.ml) cp "$1" source.ml && ocamlopt -o program source.ml ;;
    *.f90) gfortran -O2 -o program "$1" ;;
    *.adb) gnatmake -q "$1" -o program ;;
    *.d) ldc2 -O -of=program "$1" ;;
    *.cs) mcs -out:program "$1" && exec $UNDER mono program ;;
esac
exec $UNDER ./program
