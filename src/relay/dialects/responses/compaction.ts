import { GatewayError } from '../../../errors.ts'
import {
  gateResponsesRequest,
  promptText,
  readCompactionRequest,
  usageOfCompaction,
} from '../../../protocols/responses/index.ts'
import type { Dialect } from '../dialect.ts'
import { unstreamed } from '../unstreamed.ts'

/** `POST /v1/responses/compact`: bytes to channels that speak responses, whose form a compaction has. */
export const compactionDialect: Dialect = {
  name: 'responses',
  promptText,
  read(scan) {
    const request = readCompactionRequest(scan)
    return {
      ...request,
      mayBeUnserved: true,
      forChannels(channels) {
        const speaking = channels.filter(({ protocols }) => protocols.includes('responses'))
        if (speaking.length === 0) throw notCompacted()
        return speaking.map((channel) => ({
          channel,
          outputMaximum: undefined,
          choices: 1,
          prepare(passThrough) {
            const { body, upstreamModel } = gateResponsesRequest(scan, request, channel, { passThrough })
            return {
              protocol: 'responses',
              path: '/responses/compact',
              headers: [],
              body,
              upstreamModel,
              dropped: [],
              tap: unstreamed,
              reply: (bytes) => ({ facts: usageOfCompaction(bytes), body: () => bytes }),
            }
          },
        }))
      },
    }
  },
}

function notCompacted(): GatewayError {
  return new GatewayError(
    'unsupported_endpoint',
    'no channel of this model speaks responses, which alone can compact a conversation; the model serves /v1/chat/completions, /v1/messages and /v1/responses',
  )
}
