import { z } from 'zod'
import {
  addReceiver,
  changedReceiver,
  changeReceiver,
  listReceivers,
  newReceiver,
  receiverPath,
  receiverSchema,
  receiverTestSchema,
  removeReceiver,
  testReceiver,
} from '../management/alerts/receivers.ts'
import { defineRootUserEndpoint, type JsonEndpoint } from './endpoint.ts'

/** Endpoints for the receivers of alerts: `docs/administration.md: Alerts`. */
export const ALERT_ENDPOINTS: readonly JsonEndpoint[] = [
  defineRootUserEndpoint('GET', '/api/alert/', {
    summary: 'The receivers of alerts, without their addresses and secrets',
    responseBody: z.array(receiverSchema),
    handle: ({ services }) => listReceivers(services),
  }),
  defineRootUserEndpoint('POST', '/api/alert/', {
    summary: 'A new receiver of alerts; its secret is in this response alone',
    cache: 'never',
    body: newReceiver,
    responseBody: z.object({ id: z.string(), secret: z.string() }),
    handle: ({ body, services }) => addReceiver(services, body),
  }),
  defineRootUserEndpoint('PUT', '/api/alert/', {
    summary: 'Changes address or events of a receiver',
    errorStatuses: [404, 409],
    body: changedReceiver,
    handle: ({ body, services }) => changeReceiver(services, body),
  }),
  defineRootUserEndpoint('DELETE', '/api/alert/:id', {
    summary: 'Removes a receiver',
    errorStatuses: [404, 409],
    params: receiverPath,
    handle: ({ params, services }) => removeReceiver(services, params.id),
  }),
  defineRootUserEndpoint('POST', '/api/alert/:id/test', {
    summary: 'Sends a signed event "test" to a receiver, once',
    errorStatuses: [404],
    params: receiverPath,
    responseBody: receiverTestSchema,
    handle: ({ params, services }) => testReceiver(services, params.id),
  }),
]
