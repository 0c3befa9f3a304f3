"""The example queries of the papers, as texts: what every part of the project is tried on.

`SHARING` are figures 3 and 10 of the sharing paper, `HISTORY` section 4 of the history paper, both as printed, with
`>=` for the typographical sign in history's query 2.
`INTERVAL_JOIN` is figure 11 of the sharing paper, which is lost in the paper's text: it is rebuilt from the words of
5.1.1 (each item meets those of the other stream whose times lie in an interval of 10 around its own), with the two
bounds joined by `and`, closed at both ends (LAWS 3.5), and the result elements of figure 10.
`SNAPSHOT` and `TEMPORAL` are the path queries of the history paper's section 3.
"""

from __future__ import annotations

Q1 = """\
<photons>
{ for $w in stream("photons")/photons/photon
    [coord/cel/ra >= 120.0 and
     coord/cel/ra <= 138.0 and
     coord/cel/dec >= -49.0 and
     coord/cel/dec <= -40.0]
    |det_time diff 60 step 40|
  let $a := avg($w/en)
  where $a >= 1.3
  return <avg_en> { $a } </avg_en> }
</photons>
"""

Q2 = """\
<photons>
{ for $w in stream("photons")/photons/photon
    [coord/cel/ra >= 120.0 and
     coord/cel/ra <= 138.0 and
     coord/cel/dec >= -49.0 and
     coord/cel/dec <= -40.0]
    |det_time diff 20 step 10|
  let $a := avg($w/en)
  return <avg_en> { $a } </avg_en> }
</photons>
"""

Q3 = """\
<photons>
{ for $p in stream("photons")/photons/photon
  where $p/en >= 1.3
    and $p/coord/cel/ra >= 130.5
    and $p/coord/cel/ra <= 135.5
    and $p/coord/cel/dec >= -48.0
    and $p/coord/cel/dec <= -45.0
  return
    <rxj>
      { $p/coord/cel/ra }
      { $p/coord/cel/dec }
      { $p/en } { $p/det_time }
    </rxj> }
</photons>
"""

Q4 = """\
<photons>
{ for $p in stream("photons")/photons/photon
  where $p/coord/cel/ra >= 120.0
    and $p/coord/cel/ra <= 138.0
    and $p/coord/cel/dec >= -49.0
    and $p/coord/cel/dec <= -40.0
  return
    <vela>
      { $p/coord/cel/ra }
      { $p/coord/cel/dec }
      { $p/phc } { $p/en } { $p/det_time }
    </vela> }
</photons>
"""

Q5 = """\
<photons>
{ for $x in stream("photon1")/photons/photon
    |det_time diff 10 step 5|
  for $y in stream("photon2")/photons/photon
    |det_time diff 20 step 10|
  where $x/en >= $y/en + 0.5
  return
    <result>
      { $x/en } { $x/phc }
      { $y/en } { $y/phc }
    </result> }
</photons>
"""

Q6 = """\
<photons>
{ for $x in stream("photon1")/photons/photon
    |det_time diff 10 step 5|
  for $y in stream("photon2")/photons/photon
    |det_time diff 20 step 10|
  where $x/en >= $y/en
  return
    <result>
      { $x/en } { $x/det_time }
      { $y/en } { $y/det_time }
    </result> }
</photons>
"""

Q7 = """\
<photons>
{ for $x in stream("photon1")/photons/photon
    |det_time diff 30 step 5|
  for $y in stream("photon2")/photons/photon
    |det_time diff 15 step 10|
  where $x/en >= $y/en
  return
    <result>
      { $x/en } { $x/det_time }
      { $y/en } { $y/det_time }
    </result> }
</photons>
"""

Q8 = """\
<photons>
{ for $x in stream("photon1")/photons/photon
    |det_time diff 15 step 10|
  for $y in stream("photon2")/photons/photon
    |det_time diff 30 step 15|
  where $x/phc >= $y/phc
  return
    <result>
      { $x/en } { $x/det_time }
      { $y/en } { $y/det_time }
    </result> }
</photons>
"""

INTERVAL_JOIN = """\
<photons>
{ for $x in stream("photon1")/photons/photon
  for $y in stream("photon2")/photons/photon
  where $x/det_time >= $y/det_time - 10
    and $x/det_time <= $y/det_time + 10
  return
    <result>
      { $x/en } { $x/det_time }
      { $y/en } { $y/det_time }
    </result> }
</photons>
"""

SHARING = {"q1": Q1, "q2": Q2, "q3": Q3, "q4": Q4, "q5": Q5, "q6": Q6, "q7": Q7, "q8": Q8}

BOOKS = """\
<books>{
  for $b in stream("books")//biblio
    [publisher = "Wiley"]/books
  where $b/author/lastname = "Smith"
  order by $b/price
  return <book>{ $b/title, $b/price }</book>
}</books>
"""

TICKERS = """\
for $q in stream("tickers")//ticker
where $q/quote >= $q/quote#1 * 1.1
order by ($q/quote - $q/quote#1) div $q/quote
return <quote>{ $q/name, $q/quote }</quote>
"""

PACKETS = """\
for $a in stream("ack")//packet
where not (some $s in stream("syn")//packet?[60]
           satisfies $s/id = $a/id
           and $s/srcIP = $a/destIP
           and $s/srcPort = $a/destPort)
return <warning>{
  $a/id, $a/destIP, $a/destPort
}</warning>
"""

RADAR = """\
for $r in stream("radar1")//event?[1],
    $s in stream("radar2")//event?[1]
where $r/frequency = $s/frequency
return <position>{
  triangulate($r/angle,$s/angle)
}</position>
"""

TRAFFIC = """\
for $v in stream("vehicle")//event[type="ambulance"]?[1],
    $r in stream("road_sensor")//event?[1],
    $t in stream("traffic_light")//event?[1]
where distance($v/location,$r/location) < 0.1
  and distance($v/location,$t/location) < 10
return <set id="{ $t/id}">
  <status>green</status>,
  <time>{ (distance($v/location,$t/location)
           div $r/speed) }</time>
</set>
"""

HISTORY = {"query1": BOOKS, "query2": TICKERS, "query3": PACKETS, "query4": RADAR, "query5": TRAFFIC}

SNAPSHOT = "./a/b"
TEMPORAL = ("./a#1/b", "./a#1/b#2", "./a/b#1", "./a/b#[1]")
