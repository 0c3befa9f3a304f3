"""The queries of the sharing paper that remember, as its figures 3 and 10 print them."""

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
