import { simulateRouting, simulationBody, simulationSchema } from '../management/channels/simulate-routing.ts'
import { defineAdminEndpoint, type JsonEndpoint } from './endpoint.ts'

/** Endpoint that shows where a call would go, and why: `docs/administration.md: Routing`. */
export const ROUTING_ENDPOINTS: readonly JsonEndpoint[] = [
  defineAdminEndpoint('POST', '/api/routing/simulate', {
    summary: 'Where a call would go and why not elsewhere, or its refusal; nothing is sent',
    errorStatuses: [404],
    body: simulationBody,
    responseBody: simulationSchema,
    handle: ({ user, body, services }) => simulateRouting(services, body, user),
  }),
]
