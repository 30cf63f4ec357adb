import {
  type AnswerContext,
  findAnswerTexts,
  type TextChange,
  decodeStringAt,
  applyTextChanges,
} from '@sluice/wire/found-texts'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { refusalInDialect, replaceAnswerByRefusal } from '@sluice/wire/refused-answer'
import type { AnswerTexts } from '@sluice/wire/text-finder'
import { NO_USAGE } from '@sluice/wire/usage'
import type { WholeReply } from '../../call/dialects/answer-reader.ts'
import { type AnswerCheck, answerCheck, checkAnswerTexts, unlessBlocked } from './answer-check.ts'
import type { CallGuards } from './call-guards.ts'

/** Facts about stored answers, whose reasoning is not signed. */
const STORED: AnswerContext = { dialect: 'responses', signsReasoning: false }

/** An answer, and its texts in order. */
interface FoundAnswer extends AnswerTexts {
  readonly scan: ScannedObject
}

/**
 * Checks a stored answer, in the client's dialect, each time it is read. Resolves to the answer to send.
 * Rejects with `CheckCancelled` if the client has left.
 */
export async function checkStoredAnswer(bytes: Buffer, guards: CallGuards): Promise<Buffer> {
  const { form } = await checkedForm(bytes, { guards, turns: guards.turns }, STORED)
  return form(bytes)
}

/** Has a whole answer checked, in the client's dialect, before it is charged. */
export function checkWholeReply(reply: WholeReply, guards: CallGuards, origin: AnswerContext): WholeReply {
  const { facts, next } = reply
  if (next)
    return {
      ...reply,
      next: { ...next, reply: (bytes) => checkWholeReply(next.reply(bytes), guards, origin) },
    }
  if (!facts.valid) return reply
  return {
    ...reply,
    check: async (signal) => {
      const given = reply.preview?.() ?? reply.body(NO_USAGE)
      const { form, isBlocked } = await checkedForm(given, answerCheck(guards, signal), origin)
      return {
        ...reply,
        body: (charged) => form(reply.body(charged)),
        lasting: {
          ...reply.lasting,
          // A blocked answer is not stored, so that it cannot be read later.
          keep: async (answered, charged) => {
            if (!isBlocked) await reply.lasting?.keep?.(answered, charged, form)
          },
        },
      }
    },
  }
}

/** Checks an answer. `form` gives the same form to the answer as it is written later, which has other counts of tokens. */
async function checkedForm(
  given: Buffer,
  check: AnswerCheck,
  origin: AnswerContext,
): Promise<{ readonly form: (bytes: Buffer) => Buffer; readonly isBlocked: boolean }> {
  const { guards } = check
  const found = foundIn(given, origin)
  const checked = found ? await unlessBlocked(checkedTexts(found, check)) : guards.failed() ? [] : undefined
  return {
    isBlocked: checked === undefined,
    form(bytes) {
      const answer = bytes === given ? found : foundIn(bytes, origin)
      if (checked === undefined)
        return answer ? refusalOf(answer.scan, origin) : refusalInDialect(origin.dialect)
      return answer ? withTexts(answer, checked, guards) : bytes
    },
  }
}

function checkedTexts({ scan, texts }: FoundAnswer, check: AnswerCheck): Promise<readonly string[]> {
  const given = texts.map((found) => ({ ...found, text: decodeStringAt(scan.bytes, found.from, found.to) }))
  return checkAnswerTexts(check, given, scan)
}

/** Returns a refusal in place of an answer; of its other members, only words of the protocol are left. */
function refusalOf(scan: ScannedObject, origin: AnswerContext): Buffer {
  const refused = scanObject(replaceAnswerByRefusal(scan, origin.dialect), RESPONSE_LIMITS)
  const { texts } = findAnswerTexts(refused, origin)
  return applyTextChanges(
    refused.bytes,
    texts.map(({ from, to }) => ({ from, to, text: '""' })),
  )
}

function withTexts(
  { scan, texts, repeating }: FoundAnswer,
  checked: readonly string[],
  guards: CallGuards,
): Buffer {
  const changes: TextChange[] = []
  for (const [index, { from, to }] of texts.entries()) {
    const text = checked[index]
    if (text !== undefined && text !== decodeStringAt(scan.bytes, from, to))
      changes.push({ from, to, text: JSON.stringify(text) })
  }
  if (guards.changesAnswer) for (const [from, to, text] of repeating) changes.push({ from, to, text })
  return applyTextChanges(
    scan.bytes,
    changes.toSorted((a, b) => a.from - b.from),
  )
}

/** The texts of an answer; undefined if it is not a JSON object. */
function foundIn(bytes: Buffer, origin: AnswerContext): FoundAnswer | undefined {
  let scan: ScannedObject
  try {
    scan = scanObject(bytes, RESPONSE_LIMITS)
  } catch {
    return undefined
  }
  const { texts, repeating } = findAnswerTexts(scan, origin)
  return { scan, texts, repeating }
}
