import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { telemetrySchema } from '../../src/management/telemetry.ts'
import { request } from './client.ts'

/** How many records of one signal (traces, metrics or logs) were exported. */
export type ExportedSignal = z.output<typeof telemetrySchema>[number]

/** How much telemetry was exported to the collector and how much was lost; refreshed every ten seconds. */
export function telemetryQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'telemetry'],
    queryFn: () => request<readonly ExportedSignal[]>('GET', '/api/telemetry/'),
    refetchInterval: 10_000,
  })
}
