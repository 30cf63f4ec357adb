import { expect, test } from 'vitest'
import { mergeMetricsTexts } from './merge-metrics-texts.ts'

const one = `# HELP sluice_requests_total Requests answered.
# TYPE sluice_requests_total counter
sluice_requests_total{path="/v1/models",status="200"} 3
# HELP sluice_open_calls Requests whose response is not complete.
# TYPE sluice_open_calls gauge
sluice_open_calls 2
# HELP sluice_event_loop_delay_p99_seconds Delay.
# TYPE sluice_event_loop_delay_p99_seconds gauge
sluice_event_loop_delay_p99_seconds 0.5
`
const other = `# HELP sluice_requests_total Requests answered.
# TYPE sluice_requests_total counter
sluice_requests_total{path="/v1/models",status="200"} 4
sluice_requests_total{path="a b",status="404"} 1
# HELP sluice_event_loop_delay_p99_seconds Delay.
# TYPE sluice_event_loop_delay_p99_seconds gauge
sluice_event_loop_delay_p99_seconds 0.25
`

test('merging the metrics of processes adds counters and gauges, and takes the maximum of delays', () => {
  expect(mergeMetricsTexts([one, other])).toBe(`# HELP sluice_requests_total Requests answered.
# TYPE sluice_requests_total counter
sluice_requests_total{path="/v1/models",status="200"} 7
sluice_requests_total{path="a b",status="404"} 1
# HELP sluice_open_calls Requests whose response is not complete.
# TYPE sluice_open_calls gauge
sluice_open_calls 2
# HELP sluice_event_loop_delay_p99_seconds Delay.
# TYPE sluice_event_loop_delay_p99_seconds gauge
sluice_event_loop_delay_p99_seconds 0.5
`)
  expect(mergeMetricsTexts([one])).toBe(one)
})

test('the merged metrics of ended processes contain only their counters', () => {
  expect(
    mergeMetricsTexts([one, other], { countersOnly: true }),
  ).toBe(`# HELP sluice_requests_total Requests answered.
# TYPE sluice_requests_total counter
sluice_requests_total{path="/v1/models",status="200"} 7
sluice_requests_total{path="a b",status="404"} 1
`)
})
