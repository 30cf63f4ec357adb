import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { FINISH_REASONS as CHAT } from './chat/stop-reasons.ts'
import { FINISH_REASONS as GEMINI } from './gemini/stop-reasons.ts'
import { writeStop } from './messages/stop-reasons.ts'
import type { StopReason } from './reply.ts'
import { incompleteReason } from './responses/stop-reasons.ts'

/** The meanings as the page words them, in its order. */
const MEANINGS: Readonly<Record<StopReason, string>> = {
  end: 'the end of the answer',
  'tool-calls': 'the answer calls tools',
  'stop-sequence': 'a stop sequence',
  pause: 'a pause, after which the client may go on',
  length: 'the limit of tokens',
  refusal: 'a refusal, or a filter',
}

test('docs/api.md: How an answer ends has the words of each protocol for the end of a converted answer', () => {
  const page = readFileSync(new URL('../../../docs/api.md', import.meta.url), 'utf8')
  const rows = (Object.keys(MEANINGS) as StopReason[]).map((reason) => {
    const messages = writeStop({ reason }, { calledTools: false, refused: false }) as { stop_reason: string }
    const incomplete = incompleteReason({ reason })
    const responses = incomplete === undefined ? '`completed`' : `\`incomplete\`, \`${incomplete}\``
    return `| ${MEANINGS[reason]} | \`${CHAT[reason]}\` | \`${messages.stop_reason}\` | ${responses} | \`${GEMINI[reason]}\` |`
  })
  expect(page).toContain(
    `| Meaning | Chat | Messages | Responses | Gemini |\n|---|---|---|---|---|\n${rows.join('\n')}\n`,
  )
})
