import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { AlertType } from '../../src/domain/alert.ts'
import type { receiverSchema, receiverTestSchema } from '../../src/management/alerts/receivers.ts'
import { request } from './client.ts'

/** A receiver of alerts, without its address. */
export type Receiver = z.output<typeof receiverSchema>

/** What came back from a test. */
export type ReceiverTest = z.output<typeof receiverTestSchema>

/** The receivers of alerts. */
export function receiversQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'receivers'],
    queryFn: () => request<readonly Receiver[]>('GET', '/api/alert/'),
  })
}

/** Adds a receiver, and returns its secret. */
export async function addReceiver(url: string, events: readonly AlertType[]): Promise<string> {
  const made = await request<{ readonly secret: string }>('POST', '/api/alert/', { url, events })
  return made.secret
}

/** Removes a receiver. */
export async function removeReceiver(id: string): Promise<void> {
  await request('DELETE', `/api/alert/${id}`)
}

/** Sends an event "test" to a receiver. */
export function testReceiver(id: string): Promise<ReceiverTest> {
  return request<ReceiverTest>('POST', `/api/alert/${id}/test`)
}
