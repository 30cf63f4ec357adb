import { NO_USAGE } from '../../../domain/usage.ts'
import { asRecord } from '../../json/record.ts'
import { isError } from '../../reply-facts.ts'
import { count } from '../../token-count.ts'
import { type EmbedForm, noVectors, vectorsReply } from '../../texts-to-embed.ts'
import { textGroups } from '../../text-groups.ts'
import { vectorSpans, withoutVectors } from '../../vector-spans.ts'
import { readEmbedReply } from './reply.ts'

/** Most texts and tokens of one request; a text has at most as many tokens as bytes. */
const MAX_TEXTS = 250
const MAX_TOKENS = 20_000

/** The model of this family that takes one text a request. */
const SINGLE = /gemini-embedding/i

/** `:predict` on Vertex, with the tokens of each text beside its vector. */
export const predictForm: EmbedForm = {
  bodies({ texts, dimensions, task }, upstreamModel) {
    const maxTexts = SINGLE.test(upstreamModel) ? 1 : MAX_TEXTS
    const bodyOf = (group: readonly string[]): Buffer =>
      Buffer.from(
        JSON.stringify({
          instances: group.map((content) => ({ content, task_type: task })),
          parameters: dimensions === undefined ? undefined : { outputDimensionality: dimensions },
        }),
      )
    const [first, ...more] = textGroups(texts, maxTexts, MAX_TOKENS)
    return [bodyOf(first), ...more.map(bodyOf)]
  },
  read(bytes) {
    const spans = vectorSpans(bytes, 'values').filter(({ form }) => form === 'numbers')
    const reply = withoutVectors(bytes, spans)
    const predictions = reply?.['predictions']
    if (!reply || !Array.isArray(predictions) || spans.length === 0)
      return noVectors(reply !== undefined && isError(reply['error']))
    const input = predictions.reduce((sum: number, prediction: unknown) => sum + tokensOf(prediction), 0)
    const usage = input > 0 ? { ...NO_USAGE, input } : undefined
    return vectorsReply(
      spans.map(({ start, end }) => bytes.toString('latin1', start, end)),
      usage,
    )
  },
}

/** `:embedContent` on Vertex, which newer models have in place of `:predict`: one text a request. */
export const embedContentForm: EmbedForm = {
  bodies({ texts, dimensions, task }) {
    const config =
      dimensions === undefined && task === undefined
        ? undefined
        : { taskType: task, outputDimensionality: dimensions }
    const bodyOf = ([text]: readonly string[]): Buffer =>
      Buffer.from(JSON.stringify({ content: { parts: [{ text }] }, embedContentConfig: config }))
    const [first, ...more] = textGroups(texts, 1)
    return [bodyOf(first), ...more.map(bodyOf)]
  },
  read: readEmbedReply,
}

function tokensOf(prediction: unknown): number {
  const embeddings = asRecord(asRecord(prediction)?.['embeddings'])
  return count(asRecord(embeddings?.['statistics']) ?? {}, 'token_count')
}
