import { withMappedModel } from '@sluice/wire/edit-request'
import {
  MODERATIONS_PROMPT_RULES,
  MODERATIONS_REQUEST,
  moderationFieldNames,
  readModerationsReply,
  readModerationsRequest,
} from '@sluice/wire/moderations'
import { unstreamedStorageRules } from '../answer-storage-rules.ts'
import type { Dialect } from '../dialect.ts'
import { throwNoStreams } from '../answer-reader.ts'
import type { ParsedRequest } from '../../request-stages.ts'

/**
 * Dialect of moderations. Requests are passed through to channels that speak chat. A call is free if the
 * model has no price.
 */
export const moderationsDialect: Dialect = {
  name: 'chat',
  endpoint: 'moderations',
  names: moderationFieldNames,
  shape: MODERATIONS_REQUEST,
  keeping: unstreamedStorageRules('moderations'),
  servedBy: ['chat'],
  isFreeUnpriced: true,
  read(scan) {
    const read = readModerationsRequest(scan)
    const { promptBound } = read
    const forModel = (model: string): ParsedRequest => {
      return {
        model,
        stream: false,
        maxTokens: 0,
        promptBound,
        forModel,
        forChannels: (channels) =>
          channels.map((channel) => ({
            channel,
            outputMaximum: 0,
            choices: 1,
            prepare: (passThrough) => ({
              protocol: 'chat',
              path: '/moderations',
              headers: [],
              ...withMappedModel(scan, model, channel, passThrough),
              prompt: MODERATIONS_PROMPT_RULES,
              tap: throwNoStreams,
              reply: (bytes) => ({ facts: readModerationsReply(bytes), body: () => bytes }),
            }),
          })),
      }
    }
    return forModel(read.model)
  },
}
