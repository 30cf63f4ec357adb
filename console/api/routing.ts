import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { simulationBody, simulationSchema } from '../../src/management/channels/simulate-routing.ts'
import { request } from './client.ts'

/** A call whose routing is to be simulated. */
export type SimulatedCall = z.input<typeof simulationBody>

/** The channels to which a call would be sent. */
export type Simulation = z.output<typeof simulationSchema>

/** A channel to which a simulated call may be sent, in its place in the order of attempts. */
export type RoutedChannel = Simulation['route'][number]['channels'][number]

/** The channels to which a call would be sent, refreshed every `everyMs`; nothing is sent. */
export function simulationQuery(userId: number, call: SimulatedCall, everyMs: number) {
  return queryOptions({
    queryKey: [userId, 'routing', call],
    queryFn: () => request<Simulation>('POST', '/api/routing/simulate', call),
    enabled: call.model !== '',
    refetchInterval: everyMs,
  })
}
