import { EXPECTED_BYTES_PER_TOKEN } from '@sluice/wire/prompt-tokens'
import {
  type DocumentForm,
  adaptRerankRequest,
  readRerankReply,
  readRerankRequest,
  RERANK_PROMPT_RULES,
  rerankFieldNames,
  searchUnitBound,
  searchUnits,
  RERANK_REQUEST,
} from '@sluice/wire/rerank'
import { unstreamedStorageRules } from '../answer-storage-rules.ts'
import type { Dialect } from '../dialect.ts'
import { throwNoStreams } from '../answer-reader.ts'
import type { ParsedRequest } from '../../request-stages.ts'

/**
 * Dialect of rerank. Requests are passed through to channels that speak it. The results are returned in the
 * order of their relevance.
 */
export const rerankDialect = (documentForm: DocumentForm): Dialect => ({
  name: 'rerank',
  endpoint: 'rerank',
  names: rerankFieldNames,
  shape: RERANK_REQUEST,
  keeping: unstreamedStorageRules(`rerank ${documentForm}`),
  read(scan) {
    const read = readRerankRequest(scan)
    const expectedTokens = Math.ceil(scan.bytes.length / EXPECTED_BYTES_PER_TOKEN)
    const measured = {
      bounds: { searchUnits: searchUnitBound(scan) },
      prompt: { searchUnits: searchUnits(scan, expectedTokens) },
      searchUnits: (tokens: number) => searchUnits(scan, tokens),
    }
    const forModel = (model: string): ParsedRequest => {
      const request = { ...read, model }
      return {
        model,
        stream: false,
        maxTokens: 0,
        promptBound: request.promptBound,
        measured,
        forModel,
        forChannels: (channels) =>
          channels.map((channel) => ({
            channel,
            outputMaximum: 0,
            choices: 1,
            prepare(passThrough) {
              const { body, upstreamModel, dropped } = adaptRerankRequest(scan, request, channel, passThrough)
              return {
                protocol: 'rerank',
                path: '/rerank',
                headers: [],
                body,
                prompt: RERANK_PROMPT_RULES,
                upstreamModel,
                dropped,
                tap: throwNoStreams,
                reply: (bytes) => readRerankReply(bytes, scan, request, documentForm),
              }
            },
          })),
      }
    }
    return forModel(read.model)
  },
})
