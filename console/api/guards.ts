import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type {
  changedGuard,
  guardSchema,
  guardTest,
  guardTestSchema,
  newGuard,
} from '../../src/management/guards/guards.ts'
import { request } from './client.ts'

/** A guard with what it has decided in the last 24 hours. */
export type Guard = z.output<typeof guardSchema>

/** A guard in the form of gateway.yaml. */
export type GuardFields = z.input<typeof newGuard>

/** A text and the guards to try with it. */
export type GuardTest = z.input<typeof guardTest>

/** What guards would do with a text. */
export type GuardTestResult = z.output<typeof guardTestSchema>

/** All guards; those from gateway.yaml come first. */
export function guardsQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'guards'],
    queryFn: () => request<readonly Guard[]>('GET', '/api/guards'),
  })
}

export function addGuard(fields: GuardFields): Promise<Guard> {
  return request<Guard>('POST', '/api/guards', fields)
}

/**
 * Replaces the guard with the name in `fields`; if `version` is given, only if the guard still has that
 * version.
 */
export function changeGuard(fields: z.input<typeof changedGuard>): Promise<Guard> {
  return request<Guard>('PUT', '/api/guards', fields)
}

/** Removes a guard. */
export async function deleteGuard(name: string): Promise<void> {
  await request('DELETE', `/api/guards/${encodeURIComponent(name)}`)
}

/** Tries guards with a text; nothing is sent to an upstream, counted or stored. */
export function testGuards(given: GuardTest): Promise<GuardTestResult> {
  return request<GuardTestResult>('POST', '/api/guards/test', given)
}
