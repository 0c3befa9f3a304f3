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
