import {
  listUpstreamModels,
  modelsQuestion,
  upstreamModels,
} from '../../management/channels/list-upstream-models.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Test a channel`. */
export const upstreamModelsEndpoint = defineEndpoint({
  method: 'POST',
  path: '/api/channel/models',
  area: 'management',
  access: 'admin',
  summary: 'Lists the models that the upstream of a channel names, saved or not',
  errorStatuses: [404, 409],
  body: modelsQuestion,
  responseBody: upstreamModels,
  envelope: 'own',
  handle: ({ user, body, parts }) => listUpstreamModels(parts, body, user),
})
