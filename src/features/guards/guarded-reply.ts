import { findToolCallsAndImages } from '@sluice/wire/tool-calls-and-images'
import {
  type AnswerContext,
  findAnswerTexts,
  type TextChange,
  decodeStringAt,
  applyTextChanges,
} from '@sluice/wire/guarded-texts'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { refusalInDialect, replaceAnswerByRefusal } from '@sluice/wire/refused-answer'
import { NO_USAGE } from '@sluice/wire/usage'
import type { WholeReply } from '../../call/dialects/dialect.ts'
import { type CallGuards, GuardBlock } from './call-guards.ts'
import type { CheckTurns } from '../../call/check-turns.ts'
import { checkedAnswer } from './services/checked-answer.ts'
import type { CheckedText, ServiceChecks } from './services/service-checks.ts'

/** Number of bytes from which an answer is checked in turns. */
const LONG_BYTES = 1024

/** Facts about stored answers, whose reasoning is not signed. */
const STORED: AnswerContext = { dialect: 'responses', signsReasoning: false }

/**
 * Checks a stored answer, in the client's dialect, each time it is read. Resolves to the answer to send.
 * Rejects with `CheckCancelled` if the client has left.
 */
export async function checkStoredAnswer(bytes: Buffer, guards: CallGuards): Promise<Buffer> {
  const { services } = guards
  const isServed = services?.concerns('output', 'tool_arguments') === true
  const passed = isServed ? await servedTexts(bytes, services, guards, STORED) : undefined
  const served = isServed ? withPassed(bytes, passed, guards, STORED) : bytes
  if (isServed && passed === undefined) return served
  return withPassed(served, await checkedInTurns(served, guards, STORED, guards.turns), guards, STORED)
}

/** Returns an answer with the texts that passed the guards; without texts, a refusal in its place. */
function withPassed(
  bytes: Buffer,
  passed: readonly string[] | undefined,
  guards: CallGuards,
  origin: AnswerContext,
): Buffer {
  const scan = scanned(bytes)
  if (!scan) return passed === undefined ? refusalInDialect(origin.dialect) : bytes
  return passed === undefined ? refusalOf(scan, origin) : withChecked(scan, passed, guards, origin)
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

/** Checks a whole answer, in the client's dialect, before it is charged. */
export function checkWholeReply(reply: WholeReply, guards: CallGuards, origin: AnswerContext): WholeReply {
  const { facts, next } = reply
  if (next)
    return {
      ...reply,
      next: { ...next, reply: (bytes) => checkWholeReply(next.reply(bytes), guards, origin) },
    }
  if (!facts.valid) return reply
  return guards.services?.concerns('output', 'tool_arguments')
    ? servedReply(reply, guards.services, guards, origin)
    : screenedReply(reply, guards, origin)
}

/** Checks a whole answer with the guards that search texts themselves, without a service. */
function screenedReply(reply: WholeReply, guards: CallGuards, origin: AnswerContext): WholeReply {
  const bytes = reply.preview?.() ?? reply.body(NO_USAGE)
  if (bytes.length < LONG_BYTES) return withForm(reply, checkedTexts(bytes, guards, origin), guards, origin)
  return {
    ...reply,
    check: async (signal) => {
      const turns = guards.turnsUntil(() => signal.aborted)
      return withForm(reply, await checkedInTurns(bytes, guards, origin, turns), guards, origin)
    },
  }
}

/** Returns a reply in the form that guards have given to its texts; without texts, they have blocked it. */
function withForm(
  reply: WholeReply,
  checked: readonly string[] | undefined,
  guards: CallGuards,
  origin: AnswerContext,
): WholeReply {
  const form = (bytes: Buffer): Buffer => withPassed(bytes, checked, guards, origin)
  reply.keptForm = form
  return {
    ...reply,
    body: (charged) => form(reply.body(charged)),
    // A blocked answer is not stored, so that it cannot be read later.
    keep: async (target, call, charged) => {
      if (checked !== undefined) await reply.keep?.(target, call, charged)
    },
  }
}

/** Checks a whole answer first with guards' services. The other guards then check the result. */
function servedReply(
  reply: WholeReply,
  checks: ServiceChecks,
  guards: CallGuards,
  origin: AnswerContext,
): WholeReply {
  return {
    ...reply,
    check: async (signal) => {
      const checked = await servedTexts(
        reply.preview?.() ?? reply.body(NO_USAGE),
        checks,
        guards,
        origin,
        signal,
      )
      const form = (bytes: Buffer): Buffer => withPassed(bytes, checked, guards, origin)
      const served: WholeReply = {
        ...reply,
        body: (charged) => form(reply.body(charged)),
        preview: () => form(reply.preview?.() ?? reply.body(NO_USAGE)),
        keep: async (target, call, charged) => {
          if (checked !== undefined) await reply.keep?.(target, call, charged)
        },
      }
      const screened = screenedReply(served, guards, origin)
      reply.keptForm = (bytes) => served.keptForm?.(form(bytes)) ?? form(bytes)
      return screened.check ? screened.check(signal) : screened
    },
  }
}

/**
 * Resolves to the texts of an answer in order, as services have changed them; undefined if a service blocks
 * one.
 */
async function servedTexts(
  bytes: Buffer,
  checks: ServiceChecks,
  guards: CallGuards,
  origin: AnswerContext,
  signal?: AbortSignal,
): Promise<readonly string[] | undefined> {
  const scan = scanned(bytes)
  if (!scan) return guards.failed() ? [] : undefined
  const texts = findAnswerTexts(scan, origin).texts.map(
    (found): CheckedText => ({ ...found, text: decodeStringAt(scan.bytes, found.from, found.to) }),
  )
  try {
    const answer = {
      texts,
      ...findToolCallsAndImages(scan),
      side: 'response',
      ...(signal && { signal }),
    } as const
    return await checkedAnswer(checks, guards, answer)
  } catch (error) {
    if (error instanceof GuardBlock) return undefined
    throw error
  }
}

/** The texts of an answer in order, as guards have changed them; undefined if a guard blocks one. */
function checkedTexts(
  bytes: Buffer,
  guards: CallGuards,
  origin: AnswerContext,
): readonly string[] | undefined {
  const scan = scanned(bytes)
  if (!scan) return guards.failed() ? [] : undefined
  try {
    return findAnswerTexts(scan, origin).texts.map((found) => {
      const text = decodeStringAt(scan.bytes, found.from, found.to)
      return guards.checkAnswerText(text, found)
    })
  } catch (error) {
    if (error instanceof GuardBlock) return undefined
    throw error
  }
}

/** The same as `checkedTexts`, in turns with other work. Rejects with `CheckCancelled`. */
async function checkedInTurns(
  bytes: Buffer,
  guards: CallGuards,
  origin: AnswerContext,
  turns: CheckTurns,
): Promise<readonly string[] | undefined> {
  const scan = scanned(bytes)
  if (!scan) return guards.failed() ? [] : undefined
  try {
    const checked: string[] = []
    for (const found of findAnswerTexts(scan, origin).texts) {
      const text = decodeStringAt(scan.bytes, found.from, found.to)
      checked.push(await guards.checkLongAnswerText(text, found, turns))
    }
    return checked
  } catch (error) {
    if (error instanceof GuardBlock) return undefined
    throw error
  }
}

function withChecked(
  scan: ScannedObject,
  checked: readonly string[],
  guards: CallGuards,
  origin: AnswerContext,
): Buffer {
  const changes: TextChange[] = []
  const { texts, repeating } = findAnswerTexts(scan, origin)
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

function scanned(bytes: Buffer): ScannedObject | undefined {
  try {
    return scanObject(bytes, RESPONSE_LIMITS)
  } catch {
    return undefined
  }
}
