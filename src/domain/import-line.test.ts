import { expect, test } from 'vitest'
import { compareLines, countLines, type ReportLine, withRefusedLines } from './import-line.ts'

const lineOf = (
  kind: ReportLine['kind'],
  name: string,
  fate: ReportLine['fate'] = 'carried',
): ReportLine => ({
  kind,
  id: undefined,
  name,
  fate,
  notes: [],
})

test('rows that could not be written are counted as left, also those whose planned lines are beyond the end of the report', () => {
  const all = [
    lineOf('user', 'ann'),
    lineOf('user', 'bob'),
    lineOf('token', 'laptop', 'left'),
    lineOf('token', 'laptop'),
    lineOf('token', 'laptop'),
    lineOf('token', 'phone', 'changed'),
  ].toSorted(compareLines)
  const reason = 'a reason'
  const refused = ['bob', 'laptop', 'phone'].flatMap((name) => {
    const planned = all.find((line) => line.name === name && line.fate !== 'left')
    return planned ? [{ planned, reason }] : []
  })
  for (const shown of [all.length, 3, 0]) {
    const { lines, counts } = withRefusedLines(
      { lines: all.slice(0, shown), counts: countLines(all) },
      refused,
    )
    expect(counts.user).toEqual({ carried: 1, changed: 0, there: 0, left: 1 })
    expect(counts.token).toEqual({ carried: 1, changed: 0, there: 0, left: 3 })
    // Within a kind, those that need attention come first.
    const whole = [
      ['bob', 'left', ['it could not be written: a reason']],
      ['ann', 'carried', []],
      ['laptop', 'left', []],
      ['laptop', 'left', ['it could not be written: a reason']],
      ['phone', 'left', ['it could not be written: a reason']],
      ['laptop', 'carried', []],
    ]
    expect(lines.map(({ name, fate, notes }) => [name, fate, notes])).toEqual(whole.slice(0, shown))
  }
})
