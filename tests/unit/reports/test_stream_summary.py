"""The summary of a stream whose classes were measured release by release."""


def test_measured_in_each_release_is_not_said_to_be_none_and_the_report_is_named(folder, shoal):
    shoal("sample", "purchases", "-n", "3000", "--seed", "7", "-o", "s.csv", "-q", status=0)
    stream = ("stream", "s.csv", "-p", "s.policy.yaml", "-o", "out.csv")

    shown = shoal(*stream, "--measure", "release", "--report", "report.html", status=0).err

    assert "l-diversity over category: asked 3, checked in each release: holds" in shown
    assert "nothing (no class)" not in shown
    assert "classes of at least 10 people, measured release by release, 3000 records" in shown
    assert "wrote out.csv, out.csv.certificate.json and report.html" in shown
