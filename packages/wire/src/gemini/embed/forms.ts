import { type EmbedForm, embedRequests } from '../../texts-to-embed.ts'
import { textGroups } from '../../text-groups.ts'
import { resourceName } from '../method-path.ts'
import { embedReading } from './reply.ts'

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
  reading: embedReading,
}
