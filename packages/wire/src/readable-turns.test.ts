import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { shapedDocuments } from '../../../test/generators/shaped-documents.ts'
import { lawRuns } from '../../../test/runner/tier.ts'
import { CHAT_PROMPT_RULES, COMPLETIONS_PROMPT_RULES } from './chat/index.ts'
import { CONVERSE_PROMPT_RULES } from './converse/index.ts'
import { GEMINI_PROMPT_RULES } from './gemini/index.ts'
import { RESPONSE_LIMITS, scanObject } from './json/json-scan.ts'
import { MESSAGES_PROMPT_RULES } from './messages/index.ts'
import type { PromptRules } from './prompt-text.ts'
import { type ReadablePart, turnsOfRequest } from './readable-turns.ts'
import { RESPONSES_PROMPT_RULES } from './responses/index.ts'
import { indexOf, kindOfCode, outlineOf, ownerOfCode, tableOfCode } from './shape/outline.ts'
import { KIND, OWNER } from './shape/vocabulary.ts'

const RULES: Readonly<Record<string, PromptRules>> = {
  chat: CHAT_PROMPT_RULES,
  completions: COMPLETIONS_PROMPT_RULES,
  converse: CONVERSE_PROMPT_RULES,
  gemini: GEMINI_PROMPT_RULES,
  messages: MESSAGES_PROMPT_RULES,
  responses: RESPONSES_PROMPT_RULES,
}

const READ: ReadonlySet<number> = new Set([
  KIND.text,
  KIND.reasoning,
  KIND.result,
  KIND.arguments,
  KIND.input,
])
const NOT_SAID: ReadonlySet<number> = new Set([OWNER.provider, OWNER.program])

/** The texts that sides of a request said: all strings of these kinds, however deep they are. */
function textsByOutline(body: Buffer, rules: PromptRules): string[] {
  const scan = scanObject(body, RESPONSE_LIMITS)
  const outline = outlineOf(scan, rules.shape)
  const texts: string[] = []
  let skipped = 0
  for (let node = 0; node < scan.tape.length; node += 3) {
    if (node < skipped) continue
    const code = outline[indexOf(node)] as number
    const kind = kindOfCode(code)
    const isMedia = rules.media[tableOfCode(code)]?.(scan, node) !== undefined
    const isCovered = kind !== KIND.structure && scan.isContainer(node)
    const isKey = scan.bytes.toString('latin1', scan.endOf(node), scan.endOf(node) + 1) === ':'
    if (isMedia || isCovered || (kind === KIND.undescribed && !isKey)) skipped = scan.tape[node + 2] as number
    else if (isKey || !READ.has(kind) || NOT_SAID.has(ownerOfCode(code))) continue
    else if (scan.kindOf(node) === 'string') texts.push(String(scan.parse(node)))
  }
  return texts.filter((text) => text !== '')
}

/** The texts in the turns of a request. */
function textsOfTurns(body: Buffer, rules: PromptRules): string[] {
  const turns = turnsOfRequest(scanObject(body, RESPONSE_LIMITS), rules)
  const textsOf = (part: ReadablePart): string[] => {
    if (part.kind === 'tool-result') return part.parts.flatMap(textsOf)
    if (part.kind === 'tool-call') return [part.input]
    return 'text' in part ? [part.text] : []
  }
  return turns.flatMap(({ parts }) => parts.flatMap(textsOf))
}

describe('turns of requests', () => {
  test.each(Object.entries(RULES))('a law: the turns of a %s request have each text once', (_, rules) => {
    fc.assert(
      fc.property(shapedDocuments(rules.shape), (document) => {
        const body = Buffer.from(document)
        const found = textsOfTurns(body, rules)
        for (const text of textsByOutline(body, rules)) {
          const at = found.indexOf(text)
          expect(at, text).not.toBe(-1)
          found.splice(at, 1)
        }
        // The rest are values that are not strings: objects as arguments, and numbers in place of texts.
        for (const json of found) if (json !== '') expect(typeof JSON.parse(json)).not.toBe('string')
      }),
      { numRuns: lawRuns(300) },
    )
  })
})
