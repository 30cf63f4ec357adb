import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { AlertType } from '../../src/domain/alert.ts'
import type { receiverSchema, receiverTestSchema } from '../../src/management/alerts/receivers.ts'
import { request } from './client.ts'

/** A receiver of alerts. Its address is not included. */
export type Receiver = z.output<typeof receiverSchema>

/** How a receiver answered a test event. */
export type ReceiverTest = z.output<typeof receiverTestSchema>

/** The receivers of alerts. */
export function receiversQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'receivers'],
    queryFn: () => request<readonly Receiver[]>('GET', '/api/alert/'),
  })
}

/** A receiver that was added, with its secret. */
export interface AddedReceiver {
  readonly id: string
  readonly secret: string
}

/** Adds a receiver. */
export function addReceiver(url: string, events: readonly AlertType[]): Promise<AddedReceiver> {
  return request<AddedReceiver>('POST', '/api/alert/', { url, events })
}

/** Removes a receiver. */
export async function removeReceiver(id: string): Promise<void> {
  await request('DELETE', `/api/alert/${id}`)
}

/** Sends an event "test" to a receiver. */
export function testReceiver(id: string): Promise<ReceiverTest> {
  return request<ReceiverTest>('POST', `/api/alert/${id}/test`)
}
