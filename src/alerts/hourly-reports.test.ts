import { expect, test } from 'vitest'
import { HourlyReports, REPORT_INTERVAL_MS, withheldToolKey, type WithheldTool } from './hourly-reports.ts'

const changed = (server: string, tool: string): WithheldTool => ({
  server,
  tool,
  digest: 'a',
  approved_digest: null,
})

test('a server that changes very many tools leaves room for the reports about others', () => {
  const reports = new HourlyReports(withheldToolKey, ({ server }) => server)
  for (let at = 0; at < 1_000; at++) reports.note(changed('hostile', `tool-${at}`))
  reports.note(changed('good', 'search'))
  const due = reports.due(0)
  expect(due.filter(({ server }) => server === 'hostile')).toHaveLength(200)
  expect(due).toContainEqual(changed('good', 'search'))
})

test('a fact that is not noted for an hour makes room for another one', () => {
  const reports = new HourlyReports(withheldToolKey, ({ server }) => server)
  for (let at = 0; at < 200; at++) reports.note(changed('web', `tool-${at}`))
  reports.due(0)
  reports.note(changed('web', 'one-more'))
  expect(reports.due(REPORT_INTERVAL_MS)).toEqual([])
  reports.note(changed('web', 'one-more'))
  expect(reports.due(REPORT_INTERVAL_MS)).toEqual([changed('web', 'one-more')])
})
