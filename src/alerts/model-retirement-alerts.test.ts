import { expect, test } from 'vitest'
import { ModelRetirementAlerts } from './model-retirement-alerts.ts'

const MODEL = { model: 'm', on: '2026-12-11', successor: null }
const at = (time: string): number => Date.parse(time)
const days = (endings: ModelRetirementAlerts, time: string) =>
  endings.due([MODEL], at(time)).map(({ threshold, data }) => [threshold, data.days])

test('an alert about the end of a model is due 60, 30, 7 and 1 days before it, each time once', () => {
  const endings = new ModelRetirementAlerts()
  expect(days(endings, '2026-10-11T00:00:00Z')).toEqual([])
  expect(days(endings, '2026-10-12T00:00:00Z')).toEqual([[60, 60]])
  expect(days(endings, '2026-10-12T00:00:01Z')).toEqual([])
  expect(days(endings, '2026-11-10T23:59:59Z')).toEqual([])
  expect(days(endings, '2026-11-11T00:00:00Z')).toEqual([[30, 30]])
  expect(days(endings, '2026-12-04T00:00:00Z')).toEqual([[7, 7]])
  expect(days(endings, '2026-12-10T00:00:00Z')).toEqual([[1, 1]])
  expect(days(endings, '2027-12-10T00:00:00Z')).toEqual([])
})

test("an alert about a model's end that becomes known late is due once, for the latest of the days 60, 30, 7 and 1 already reached", () => {
  const endings = new ModelRetirementAlerts()
  expect(days(endings, '2026-11-21T00:00:00Z')).toEqual([[30, 20]])
  expect(days(endings, '2026-11-22T00:00:00Z')).toEqual([])
  expect(days(new ModelRetirementAlerts(), '2027-01-01T00:00:00Z')).toEqual([[1, 0]])
})

test("an alert about a model's end is due again if the date changes, or if the alert could not be sent", () => {
  const endings = new ModelRetirementAlerts()
  const now = at('2026-12-05T00:00:00Z')
  expect(endings.due([MODEL], now)).toHaveLength(1)
  expect(endings.due([{ ...MODEL, on: '2026-12-12' }], now)).toHaveLength(1)
  endings.forget()
  expect(endings.due([{ ...MODEL, on: '2026-12-12' }], now)).toHaveLength(1)
})
