import { compileRule, PII_KINDS } from '@sluice/screen/rule'
import { TextScreen } from '@sluice/screen/screen'
import { describe, expect, it } from 'vitest'
import { negatives } from './negatives.ts'
import { positives } from './positives.ts'

const screen = new TextScreen([
  { rule: compileRule('secrets', { secrets: true }), do: 'redact' },
  { rule: compileRule('pii', { pii: PII_KINDS }), do: 'redact' },
])

interface Score {
  expected: number
  found: number
  wrong: number
}

const scores = new Map<string, Score>()
const missed: string[] = []
const wrong: string[] = []

function scoreOf(kind: string): Score {
  const score = scores.get(kind) ?? { expected: 0, found: 0, wrong: 0 }
  scores.set(kind, score)
  return score
}

for (const { kind, value, text } of positives()) {
  const score = scoreOf(kind)
  score.expected++
  const start = text.indexOf(value)
  let isFound = false
  for (const match of screen.find(text)) {
    // A match counts only if it is the value, all of it and nothing else.
    if (match.kind === kind && match.start === start && match.end === start + value.length) isFound = true
    else {
      scoreOf(match.kind).wrong++
      wrong.push(
        `${match.kind} in a text with ${kind}: ${text.slice(match.start, match.end)} | ${text.slice(0, 100)}`,
      )
    }
  }
  if (isFound) score.found++
  else missed.push(`${kind}: ${text.slice(0, 120)}`)
}
const texts = negatives()
for (const { family, text } of texts) {
  for (const { kind, start, end } of screen.find(text)) {
    scoreOf(kind).wrong++
    wrong.push(`${kind} in ${family}: ${text.slice(start, end)}`)
  }
}

const table = [...scores].map(([kind, { expected, found, wrong }]) => ({
  kind,
  expected,
  found,
  wrong,
  recall: found / expected,
  precision: found / (found + wrong),
}))

describe('detection of secrets and personal data', () => {
  console.log(
    [
      `${'kind'.padEnd(12)} expected  found  wrong  recall  precision`,
      ...table.map(
        ({ kind, expected, found, wrong, recall, precision }) =>
          `${kind.padEnd(12)} ${String(expected).padStart(8)} ${String(found).padStart(6)} ${String(wrong).padStart(6)}  ${recall.toFixed(3).padStart(6)}  ${precision.toFixed(3).padStart(9)}`,
      ),
      `in ${positives().length} texts with a value, and ${texts.length} without`,
      ...missed.map((text) => `missed ${text}`),
      ...wrong.map((text) => `wrong ${text}`),
    ].join('\n'),
  )

  it('has at least 200 texts with a value and 2,000 without', () => {
    expect(positives().length).toBeGreaterThanOrEqual(200)
    expect(texts.length).toBeGreaterThanOrEqual(2000)
  })

  it('finds the same in a stream, however it is cut, and holds back what the rules declare', () => {
    const whole = [...positives(), ...texts].map(({ text }) => text).join('\n')
    const { text: expected, counts } = screen.apply(whole)
    for (const size of [1, 2, 3, 7, 64, 1000]) {
      const stream = screen.stream()
      let output = ''
      for (let at = 0; at < whole.length; at += size) {
        output += stream.push(whole.slice(at, at + size))
        if (stream.held > screen.most + 1) expect(stream.held).toBeLessThanOrEqual(screen.most + 1)
        if (stream.retained > screen.most + 1) expect(stream.retained).toBeLessThanOrEqual(screen.most + 1)
      }
      output += stream.end()
      expect(output === expected).toBe(true)
      expect(stream.counts).toEqual(counts)
    }
  })

  for (const { kind, recall, precision } of table)
    it(`finds ${kind} with a recall and a precision of 97 % at least`, () => {
      expect({ recall: recall >= 0.97, precision: precision >= 0.97 }).toEqual({
        recall: true,
        precision: true,
      })
    })
})
