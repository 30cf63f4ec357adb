import { type EmbedForm, embedRequests, textGroups } from '../../texts-to-embed.ts'
import { resourceName } from '../model-name.ts'
import { vectorsReaderFor } from './reply.ts'
import { NO_USAGE, type Usage } from '../../usage.ts'
import { asRecord } from '../../json/record.ts'
import { NamedVectors } from '../../vectors.ts'
import { countAt } from '../../reported-usage.ts'

/** Maximum number of texts in one request to an upstream. */
const MAX_TEXTS = 100

/** `batchEmbedContents`: up to 100 texts per request. */
export const batchForm: EmbedForm = {
  requests({ texts, dimensions, task }, upstreamModel) {
    const model = resourceName(upstreamModel)
    const bodyOf = (group: readonly string[]): object => ({
      requests: group.map((text) => ({
        model,
        content: { parts: [{ text }] },
        taskType: task,
        outputDimensionality: dimensions,
      })),
    })
    const groups = textGroups(texts, MAX_TEXTS)
    return embedRequests(groups, bodyOf)
  },
  reading: vectorsReaderFor,
}

/** Maximum number of texts and tokens of one request. A text has at most as many tokens as bytes. */
const MAX_INSTANCES = 250
const MAX_TOKENS = 20_000

/** The model of this family that accepts only one text per request. */
const SINGLE = /gemini-embedding/i

/** `:predict` on Vertex, which reports the tokens of each text next to its vector. */
export const predictForm: EmbedForm = {
  requests({ texts, dimensions, task }, upstreamModel) {
    const maxTexts = SINGLE.test(upstreamModel) ? 1 : MAX_INSTANCES
    const bodyOf = (group: readonly string[]): object => ({
      instances: group.map((content) => ({ content, task_type: task })),
      parameters: dimensions === undefined ? undefined : { outputDimensionality: dimensions },
    })
    const groups = textGroups(texts, maxTexts, MAX_TOKENS)
    return embedRequests(groups, bodyOf)
  },
  reading: (onVector) => new NamedVectors('values', predictedUsage, onVector),
}

/** `:embedContent` on Vertex, which newer models have instead of `:predict`: one text per request. */
export const embedContentForm: EmbedForm = {
  requests({ texts, dimensions, task }) {
    const config =
      dimensions === undefined && task === undefined
        ? undefined
        : { taskType: task, outputDimensionality: dimensions }
    const bodyOf = ([text]: readonly string[]): object => ({
      content: { parts: [{ text }] },
      embedContentConfig: config,
    })
    const groups = textGroups(texts, 1)
    return embedRequests(groups, bodyOf)
  },
  reading: vectorsReaderFor,
}

function predictedUsage({ predictions }: Readonly<Record<string, unknown>>): Usage | undefined {
  if (!Array.isArray(predictions)) return undefined
  const input = predictions.reduce((sum: number, prediction: unknown) => sum + tokensOf(prediction), 0)
  return input > 0 ? { ...NO_USAGE, input } : undefined
}

function tokensOf(prediction: unknown): number {
  const embeddings = asRecord(asRecord(prediction)?.['embeddings'])
  return countAt(asRecord(embeddings?.['statistics']) ?? {}, 'token_count')
}
