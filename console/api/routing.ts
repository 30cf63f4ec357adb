import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { simulationBody, simulationSchema } from '../../src/management/channels/simulate-routing.ts'
import { request } from './client.ts'

/** A call to simulate. */
export type SimulatedCall = z.input<typeof simulationBody>

/** Where a call would go. */
export type Simulation = z.output<typeof simulationSchema>

/** A channel of a route. */
export type RoutedChannel = Simulation['route'][number]['channels'][number]

/** Where a call would go, refreshed at intervals; nothing is sent. */
export function simulationQuery(userId: number, call: SimulatedCall, everyMs: number) {
  return queryOptions({
    queryKey: [userId, 'routing', call],
    queryFn: () => request<Simulation>('POST', '/api/routing/simulate', call),
    enabled: call.model !== '',
    refetchInterval: everyMs,
  })
}
