import {
  checkCountRequest,
  textToCount,
  countTokensBody,
  geminiFieldNames,
  GEMINI_REQUEST,
  methodPath,
} from '@sluice/wire/gemini'
import type { CountTokensEndpoint } from '../count-tokens.ts'

/** The endpoint `POST /v1beta/models/{model}:countTokens`, which counts the tokens of a request. */
export function geminiCountTokens(model: string): CountTokensEndpoint {
  return {
    protocol: 'gemini',
    pathModel: model,
    names: geminiFieldNames,
    shape: GEMINI_REQUEST,
    path: (upstreamModel) => methodPath(upstreamModel, 'countTokens'),
    model(scan) {
      checkCountRequest(scan)
      return model
    },
    body: countTokensBody,
    upstreamHeaders: () => [],
    countable: textToCount,
    countedIn: 'totalTokens',
    response: (tokens) => ({
      totalTokens: tokens,
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: tokens }],
    }),
  }
}
