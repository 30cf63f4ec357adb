import { textToCount, countedModel, RESPONSES_REQUEST, responsesFieldNames } from '@sluice/wire/responses'
import type { CountTokensEndpoint } from '../count-tokens.ts'

/** The endpoint `POST /v1/responses/input_tokens`, which counts the tokens of a request. */
export const responsesCountTokens: CountTokensEndpoint = {
  protocol: 'responses',
  names: responsesFieldNames,
  shape: RESPONSES_REQUEST,
  path: () => '/responses/input_tokens',
  model: countedModel,
  upstreamHeaders: () => [],
  previousId: 'previous_response_id',
  countable: textToCount,
  countedIn: 'input_tokens',
  response: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
}
