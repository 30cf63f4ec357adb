import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { telemetrySchema } from '../../src/management/telemetry.ts'
import { request } from './client.ts'

/** The export of one signal. */
export type ExportedSignal = z.output<typeof telemetrySchema>[number]

/** What was exported, and what was lost. It changes by itself. */
export function telemetryQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'telemetry'],
    queryFn: () => request<readonly ExportedSignal[]>('GET', '/api/telemetry/'),
    refetchInterval: 10_000,
  })
}
