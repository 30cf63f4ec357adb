import type { ProtocolName } from '../../domain/protocols.ts'
import { edit } from '../../protocols/json/json-edit.ts'
import { RESPONSE_LIMITS, scanObject } from '../../protocols/json/json-scan.ts'
import { parseRecord } from '../../protocols/json/record.ts'
import { errorBody } from './error-body.ts'
import { MalformedEventStream, type StreamMessage } from './event-stream.ts'

/** Figures of the service in the last event, which are no part of the messages protocol. */
const METRICS = 'amazon-bedrock-invocationMetrics'
const NOTHING = Buffer.alloc(0)

/** A message of Bedrock's event stream as a server-sent event of the dialect. */
export function sseFrame({ headers, payload }: StreamMessage, protocol: ProtocolName): Buffer {
  const kind = headers.get(':message-type')
  if (kind === 'exception' || kind === 'error') return errorFrame(headers, payload)
  if (protocol === 'messages') return headers.get(':event-type') === 'chunk' ? chunkFrame(payload) : NOTHING
  return frameOf(headers.get(':event-type') ?? '', payload)
}

// `{"bytes": "<base64 of an event>", "p": "padding"}`
function chunkFrame(payload: Buffer): Buffer {
  const encoded = parseRecord(payload.toString())?.['bytes']
  if (typeof encoded !== 'string') throw new MalformedEventStream('a chunk has no bytes')
  const event = Buffer.from(encoded, 'base64')
  const scan = scanned(event)
  const type = scan.value('type')
  if (typeof type !== 'string') throw new MalformedEventStream('an event has no type')
  return frameOf(type, edit(event, scan, { remove: [METRICS], replace: new Map() }))
}

function scanned(event: Buffer): ReturnType<typeof scanObject> {
  try {
    return scanObject(event, RESPONSE_LIMITS)
  } catch {
    throw new MalformedEventStream('an event is no JSON object')
  }
}

function errorFrame(headers: ReadonlyMap<string, string>, payload: Buffer): Buffer {
  const name = headers.get(':exception-type') ?? headers.get(':error-code') ?? ''
  return frameOf('error', errorBody(name, payload, headers.get(':error-message')))
}

function frameOf(event: string, data: Buffer): Buffer {
  const name = event.replaceAll(/[^\w.-]/g, '')
  return Buffer.concat([Buffer.from(`event: ${name}\ndata: `), data, Buffer.from('\n\n')])
}
