import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { AlertFormat, AlertType } from '../../src/domain/alert.ts'
import type { receiverSchema, receiverTestSchema } from '../../src/management/alerts/receivers.ts'
import { request } from './client.ts'

/** A receiver of alerts: its host, events and last delivery, without its full URL and its secret. */
export type Receiver = z.output<typeof receiverSchema>

/** How an alert receiver answered a test event. */
export type ReceiverTest = z.output<typeof receiverTestSchema>

export function receiversQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'receivers'],
    queryFn: () => request<readonly Receiver[]>('GET', '/api/alert/'),
  })
}

/** A receiver of alerts that was added, with its secret. */
export interface AddedReceiver {
  readonly id: string
  readonly secret: string
}

/** Adds a URL that receives alerts of these types, in this format. */
export function addReceiver(
  url: string,
  format: AlertFormat,
  events: readonly AlertType[],
): Promise<AddedReceiver> {
  return request<AddedReceiver>('POST', '/api/alert/', { url, format, events })
}

/** Removes a receiver, so that it gets no more alerts. */
export async function removeReceiver(id: string): Promise<void> {
  await request('DELETE', `/api/alert/${id}`)
}

/** Sends a test event to a receiver of alerts. */
export function testReceiver(id: string): Promise<ReceiverTest> {
  return request<ReceiverTest>('POST', `/api/alert/${id}/test`)
}
