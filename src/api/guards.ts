import { z } from 'zod'
import {
  addGuard,
  changedGuard,
  changeGuard,
  guardPath,
  guardQuery,
  guardSchema,
  guardTest,
  guardTestSchema,
  listGuards,
  newGuard,
  removeGuard,
  testGuards,
} from '../management/guards/guards.ts'
import { defineAdminEndpoint, type JsonEndpoint } from './endpoint.ts'

/** Endpoints to manage guards: `docs/guards.md: Over HTTP`. */
export const GUARD_ENDPOINTS: readonly JsonEndpoint[] = [
  defineAdminEndpoint('GET', '/api/guards', {
    summary: 'The guards, with what they have decided in the last 24 hours',
    responseBody: z.array(guardSchema),
    handle: ({ services }) => listGuards(services),
  }),
  defineAdminEndpoint('POST', '/api/guards', {
    summary: 'A new guard, in the form of gateway.yaml',
    body: newGuard,
    responseBody: guardSchema,
    handle: ({ body, services }) => addGuard(services, body),
  }),
  defineAdminEndpoint('PUT', '/api/guards', {
    summary: 'Replaces a guard that was added over HTTP',
    errorStatuses: [404, 409],
    body: changedGuard,
    responseBody: guardSchema,
    handle: ({ body, services }) => changeGuard(services, body),
  }),
  defineAdminEndpoint('DELETE', '/api/guards/:name', {
    summary: 'Removes a guard that was added over HTTP',
    errorStatuses: [404, 409],
    params: guardPath,
    query: guardQuery,
    handle: ({ params, query, services }) => removeGuard(services, params.name, query.version),
  }),
  defineAdminEndpoint('POST', '/api/guards/test', {
    summary: 'What guards would do with a text; nothing is sent or stored',
    errorStatuses: [404],
    body: guardTest,
    responseBody: guardTestSchema,
    handle: ({ body, services }) => testGuards(services, body),
  }),
]
