#!/usr/bin/env bash
# Builds MALLET (mimno/Mallet on GitHub, tried at 2de54cb, after 2.1.1) outside this tree without Maven, from its sources alone. Needs Debian's
# openjdk-17-jdk-headless, libcarrotsearch-hppc-java and liberror-prone-java (annotations only); bsh.jar is MALLET's own, in lib.
#   bench/peers/topics/mallet.sh SOURCES FOLDER      makes FOLDER/mallet
set -euo pipefail
sources=$(realpath "$1")
mkdir -p "$2/classes"
folder=$(realpath "$2")
jars=/usr/share/java/hppc.jar:/usr/share/java/error-prone-annotations.jar:$(find "$sources/lib" -name '*.jar' ! -name 'hppc*' | paste -sd:)
find "$sources/src/main/java" -name '*.java' > "$folder/sources"
javac -proc:none -nowarn -encoding UTF-8 -d "$folder/classes" -cp "$jars" @"$folder/sources" 2> "$folder/javac.log" || { tail -20 "$folder/javac.log"; exit 1; }
cp -r "$sources/src/main/resources/." "$folder/classes"
cat > "$folder/mallet" << END
#!/bin/sh
# mallet import-file|train-topics [options]
case \$1 in import-file) tool=cc.mallet.classify.tui.Csv2Vectors ;; train-topics) tool=cc.mallet.topics.tui.TopicTrainer ;; *) exit 2 ;; esac
shift
exec java -Xmx4g -cp "$folder/classes:$jars" \$tool "\$@"
END
chmod +x "$folder/mallet"
