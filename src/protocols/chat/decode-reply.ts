import { GatewayError } from '../../errors.ts'
import { ArrivedMedia } from '../arrived-media.ts'
import { foldReply } from '../fold-reply.ts'
import { asRecord, textOr } from '../json/record.ts'
import type { Logprobs, Reply, ReplyEvent } from '../reply.ts'
import { isError } from '../reply-facts.ts'
import type { Fields } from '../field.ts'
import { noteArrived } from './arrived.ts'
import { CITED_SEARCH, citesPage } from './cited-pages.ts'
import { parseAnswer } from './object-arguments.ts'
import { ReplyParts } from './reply-parts.ts'
import { stopOf } from './stop-reasons.ts'
import { usageOf } from './usage.ts'

/** Decodes a whole reply, the first of several choices. Throws `upstream_error` for anything else. */
export function decodeReply(bytes: Buffer): Reply {
  const reply = parseAnswer(bytes.toString())
  const choice = firstChoice(reply?.['choices'])
  if (!reply || !choice || isError(reply['error']))
    throw new GatewayError('upstream_error', 'The upstream sent no response that could be understood.')
  const id = textOr(reply['id'])
  const events: ReplyEvent[] = []
  const parts = new ReplyParts((event) => events.push(event))
  parts.setReplyId(id)
  parts.read(asRecord(choice['message']) ?? {}, logprobsOf(choice))
  parts.end()
  const stop = stopOf(finishReasonOf(choice), parts)
  const usage = usageOf(reply)
  const start: ReplyEvent = { kind: 'start', id, model: textOr(reply['model']), usage: undefined }
  const whole = foldReply([start, ...events, { kind: 'end', stop, usage }]) as Reply
  const arrived = new ArrivedMedia()
  noteArrived(asRecord(choice['message']), arrived)
  return {
    ...whole,
    ...(citesPage(choice['message']) && { tools: [CITED_SEARCH] }),
    ...(!arrived.isEmpty && { arrived }),
  }
}

/** Finds the choice that counts: number 0, or one without a number. */
export function firstChoice(choices: unknown): Fields | undefined {
  if (!Array.isArray(choices)) return undefined
  for (const value of choices) {
    const choice = asRecord(value)
    if (choice && (choice['index'] ?? 0) === 0) return choice
  }
  return undefined
}

/** Returns a choice's finish reason; undefined if it has none. */
export function finishReasonOf(choice: Fields): string | undefined {
  return textOr(choice['finish_reason']) || undefined
}

/** Returns the log probabilities of the tokens of a choice's content; undefined without any. */
export function logprobsOf(choice: Fields): Logprobs | undefined {
  const tokens = asRecord(choice['logprobs'])?.['content']
  return Array.isArray(tokens) && tokens.length > 0 ? tokens : undefined
}
