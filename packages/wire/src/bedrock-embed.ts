import { NO_USAGE } from './usage.ts'
import { NamedVectors } from './named-vectors.ts'
import { count } from './token-count.ts'
import { type EmbedForm, embedRequests } from './texts-to-embed.ts'
import { textGroups } from './text-groups.ts'

/** Version with a fixed number of dimensions. */
const FIXED = /titan-embed-(?:text-v1|g1)/i

/** Amazon Titan by `invoke`: one text per request; the response reports its tokens next to the vector. */
export const titanForm: EmbedForm = {
  requests({ texts, dimensions, task }, upstreamModel, dropped) {
    if (task !== undefined) dropped.add('taskType')
    const isFixed = FIXED.test(upstreamModel)
    if (isFixed && dimensions !== undefined) dropped.add('dimensions')
    const groups = textGroups(texts, 1)
    const bodyOf = ([inputText]: readonly string[]): object => ({
      inputText,
      dimensions: isFixed ? undefined : dimensions,
    })
    return embedRequests(groups, bodyOf)
  },
  reading: (onVector) =>
    new NamedVectors(
      'embedding',
      (reply) => {
        const input = count(reply, 'inputTextTokenCount')
        return input > 0 ? { ...NO_USAGE, input } : undefined
      },
      onVector,
    ),
}
