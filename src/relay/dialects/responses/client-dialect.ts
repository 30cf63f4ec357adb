import { GatewayError } from '../../../errors.ts'
import {
  gateResponsesRequest,
  promptText,
  readResponsesRequest,
  ResponsesTap,
  usageOfResponse,
} from '../../../protocols/responses/index.ts'
import type { Conversions } from '../conversions.ts'
import type { Dialect } from '../dialect.ts'
import { requestsFor } from '../requests-for.ts'
import { convertedResponses } from './converted-responses.ts'

/** Responses: bytes to channels that speak them, converted to others. */
export function responsesDialect(conversions: Conversions): Dialect {
  return {
    name: 'responses',
    promptText,
    read(scan) {
      const request = readResponsesRequest(scan)
      if (request.background) throw backgroundRefused()
      return {
        ...request,
        forChannels: (channels, model) =>
          requestsFor(
            'responses',
            request.model,
            channels,
            model,
            (channel) => ({
              channel,
              outputMaximum: request.maxTokens,
              choices: 1,
              prepare(passThrough) {
                const gated = gateResponsesRequest(scan, request, channel, { passThrough })
                return {
                  protocol: 'responses',
                  path: convertedResponses.path,
                  headers: [],
                  body: gated.body,
                  upstreamModel: gated.upstreamModel,
                  dropped: [],
                  tap: () => new ResponsesTap(),
                  reply: (bytes) => ({ facts: usageOfResponse(bytes), body: () => bytes }),
                }
              },
            }),
            () => conversions.decode('responses', scan, request.maxTokens),
          ),
      }
    },
  }
}

// Its answer could not be read, and what it costs would not be known.
function backgroundRefused(): GatewayError {
  return new GatewayError(
    'invalid_request',
    `Invalid 'background': expected false, got true: a response is answered on its own request, since the gateway serves no GET /v1/responses/{id}.`,
  )
}
