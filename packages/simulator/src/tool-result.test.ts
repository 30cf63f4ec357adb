import { expect, test } from 'vitest'
import { REALISTIC_PACE } from './pace.ts'
import { splitIntoTokens } from './tokens.ts'
import { paraphraseResults } from './tool-result.ts'

test.each([
  [
    'JSON is read out',
    '{"wind_speed":3,"sky":["clear","blue"]}',
    'According to the tool, wind speed is 3, sky is clear; blue.',
  ],
  ['a line is quoted', 'No such file.', 'According to the tool, No such file.'],
  ['several lines are quoted', 'one\n\ttwo\n', 'The tool returned:\n\none\n\ttwo'],
  ['numbers of lines are left out', '     1\tone\n     2\ttwo\n     3\t', 'The tool returned:\n\none\ntwo'],
  [
    'notes are left out',
    '<path>/a</path>\n<content>\n1: one\n2: two\n\n(End of file)\n</content>',
    'The tool returned:\n\none\ntwo',
  ],
  [
    'reminders are left out',
    'one\ntwo\n<system-reminder>\nBeware.\n</system-reminder>',
    'The tool returned:\n\none\ntwo',
  ],
  [
    'texts before the output of a command are left out',
    'Wall time: 0.1 seconds\nOutput:\nExit code: 0\nWall time: 0 seconds\nOutput:\nDone:\nM a.txt',
    'The tool returned:\n\nDone:\nM a.txt',
  ],
  ['an empty result is reported as such', '', 'According to the tool, there is nothing to report.'],
])('the simulator quotes a tool result in its answer: %s', (_, result, said) => {
  expect(paraphraseResults([result])).toBe(said)
})

test("the simulator's answer quotes the results of both of two tool calls", () => {
  expect(paraphraseResults(['one', 'two'])).toBe('According to the tool, one.\n\nAccording to the tool, two.')
})

test('the simulator quotes as much of a long file as a stream sends in ten seconds', () => {
  for (const results of [['word '.repeat(50_000)], ['a '.repeat(9000), 'b\n'.repeat(9000)]]) {
    const said = paraphraseResults(results)
    expect(said.length).toBeGreaterThan(500)
    // A token takes at most 1.5 times as long.
    expect(splitIntoTokens(said).length * REALISTIC_PACE.tokenMs * 1.5).toBeLessThan(10_000)
  }
})
