import {
  gateRerankRequest,
  promptText,
  readRerankReply,
  readRerankRequest,
} from '../../../protocols/rerank/index.ts'
import type { Dialect, RelayedRequest } from '../dialect.ts'
import { unstreamed } from '../unstreamed.ts'

/** Rerank: bytes to channels that speak it; the results come back in order. */
export const rerankDialect: Dialect = {
  name: 'rerank',
  endpoint: 'rerank',
  promptText,
  read(scan) {
    const read = readRerankRequest(scan)
    const forModel = (model: string): RelayedRequest => {
      const request = { ...read, model }
      return {
        model,
        stream: false,
        maxTokens: 0,
        promptBound: request.promptBound,
        webSearch: false,
        forModel,
        forChannels: (channels) =>
          channels.map((channel) => ({
            channel,
            outputMaximum: 0,
            choices: 1,
            prepare(passThrough) {
              const { body, upstreamModel, dropped } = gateRerankRequest(scan, request, channel, passThrough)
              return {
                protocol: 'rerank',
                path: '/rerank',
                headers: [],
                body,
                upstreamModel,
                dropped,
                tap: unstreamed,
                reply: (bytes) => readRerankReply(bytes, scan, request),
              }
            },
          })),
      }
    }
    return forModel(read.model)
  },
}
