import type { JsonSchema } from '@sluice/wire/field-check'
import {
  batchDetailSchema,
  batchesQuery,
  batchLines,
  batchPath,
  batchSchema as managedBatchSchema,
  cancelBatch,
  listBatches,
  showBatch,
} from '../management/batches/batches.ts'
import { pageSchema } from '../management/page.ts'
import { type CallEndpoint, defineAccountEndpoint, type JsonEndpoint } from './endpoint.ts'

const COMMON = { area: 'relay', kind: 'raw', access: 'api-key', keyIn: 'bearer' } as const

const ORDER: JsonSchema = { type: 'string', enum: ['asc', 'desc'] }

function limitSchema(maximum: number): JsonSchema {
  return { type: 'integer', minimum: 1, maximum }
}

function fileFormSchema(): JsonSchema {
  const properties = {
    file: { type: 'string', contentMediaType: 'application/octet-stream' },
    purpose: { type: 'string', enum: ['batch'] },
    'expires_after[anchor]': { type: 'string', enum: ['created_at'] },
    'expires_after[seconds]': { type: 'integer', minimum: 3_600 },
  }
  return { type: 'object', required: ['file', 'purpose'], properties }
}

/** An endpoint that is refused while the nodes do not share files. */
function withSharedFiles(endpoint: CallEndpoint): CallEndpoint {
  return {
    ...endpoint,
    handle(exchange, caller, calls, params) {
      calls.files.refuseUnshared()
      return endpoint.handle(exchange, caller, calls, params)
    },
  }
}

const FILES: readonly CallEndpoint[] = [
  {
    ...COMMON,
    method: 'POST',
    path: '/v1/files',
    summary: 'Uploads a file',
    repeats: 'by key',
    formSchema: fileFormSchema,
    // Nothing is asked of a provider.
    hiddenStatuses: [404, 529],
    handle: (exchange, caller, { files }) => files.upload(exchange, caller),
  },
  {
    ...COMMON,
    method: 'GET',
    path: '/v1/files',
    summary: 'Lists files',
    queryFields: {
      purpose: { type: 'string' },
      after: { type: 'string' },
      order: ORDER,
      limit: limitSchema(10_000),
    },
    errorStatuses: [400],
    handle: (exchange, caller, { files }) => files.list(exchange, caller),
  },
  {
    ...COMMON,
    method: 'GET',
    path: '/v1/files/:id',
    summary: 'A file without its content',
    errorStatuses: [404],
    handle: (exchange, caller, { files }, { id = '' }) => files.retrieve(exchange, caller, id),
  },
  {
    ...COMMON,
    method: 'GET',
    path: '/v1/files/:id/content',
    summary: 'The content of a file',
    contentTypes: ['application/octet-stream'],
    errorStatuses: [404],
    handle: (exchange, caller, { files }, { id = '' }) => files.content(exchange, caller, id),
  },
  {
    ...COMMON,
    method: 'DELETE',
    path: '/v1/files/:id',
    summary: 'Deletes a file',
    errorStatuses: [404],
    handle: (exchange, caller, { files }, { id = '' }) => files.remove(exchange, caller, id),
  },
]

/** The caller's files: `docs/batches.md: Files`. */
export const FILE_ENDPOINTS = FILES.map(withSharedFiles)

function batchSchema(): JsonSchema {
  const expiry = {
    type: 'object',
    required: ['anchor', 'seconds'],
    properties: {
      anchor: { type: 'string', enum: ['created_at'] },
      seconds: { type: 'integer', minimum: 3_600 },
    },
  } as const
  const properties = {
    input_file_id: { type: 'string' },
    endpoint: {
      type: 'string',
      enum: ['/v1/chat/completions', '/v1/responses', '/v1/embeddings', '/v1/completions', '/v1/moderations'],
    },
    completion_window: { type: 'string', enum: ['24h'] },
    metadata: { type: ['object', 'null'], additionalProperties: { type: 'string' } },
    output_expires_after: expiry,
  } as const
  return { type: 'object', required: ['input_file_id', 'endpoint', 'completion_window'], properties }
}

function messageBatchSchema(): JsonSchema {
  const request = {
    type: 'object',
    required: ['custom_id', 'params'],
    properties: { custom_id: { type: 'string' }, params: { type: 'object' } },
  } as const
  return {
    type: 'object',
    required: ['requests'],
    properties: { requests: { type: 'array', items: request } },
  }
}

const MESSAGES = { ...COMMON, area: 'messages', keyIn: 'x-api-key' } as const

const BATCHES: readonly CallEndpoint[] = [
  {
    ...COMMON,
    method: 'POST',
    path: '/v1/batches',
    summary: 'Makes a batch of the lines of a file',
    repeats: 'by key',
    requestSchema: batchSchema,
    hiddenStatuses: [529],
    handle: (exchange, caller, { batches }) => batches.create(exchange, caller),
  },
  {
    ...COMMON,
    method: 'GET',
    path: '/v1/batches',
    summary: 'Lists batches',
    queryFields: { after: { type: 'string' }, order: ORDER, limit: limitSchema(100) },
    errorStatuses: [400],
    handle: (exchange, caller, { batches }) => batches.list('openai', exchange, caller),
  },
  {
    ...COMMON,
    method: 'GET',
    path: '/v1/batches/:id',
    summary: 'A batch',
    errorStatuses: [404],
    handle: (exchange, caller, { batches }, { id = '' }) => batches.retrieve('openai', exchange, caller, id),
  },
  {
    ...COMMON,
    method: 'POST',
    path: '/v1/batches/:id/cancel',
    summary: 'Cancels a batch',
    errorStatuses: [400, 404],
    repeats: 'never',
    handle: (exchange, caller, { batches }, { id = '' }) => batches.cancel('openai', exchange, caller, id),
  },
  {
    ...MESSAGES,
    method: 'POST',
    path: '/v1/messages/batches',
    summary: 'Makes a message batch of requests',
    repeats: 'by key',
    requestSchema: messageBatchSchema,
    hiddenStatuses: [404, 529],
    handle: (exchange, caller, { batches }) => batches.createOfMessages(exchange, caller),
  },
  {
    ...MESSAGES,
    method: 'GET',
    path: '/v1/messages/batches',
    summary: 'Lists message batches',
    queryFields: {
      before_id: { type: 'string' },
      after_id: { type: 'string' },
      limit: limitSchema(1_000),
    },
    errorStatuses: [400],
    handle: (exchange, caller, { batches }) => batches.list('messages', exchange, caller),
  },
  {
    ...MESSAGES,
    method: 'GET',
    path: '/v1/messages/batches/:id',
    summary: 'A message batch',
    errorStatuses: [404],
    handle: (exchange, caller, { batches }, { id = '' }) =>
      batches.retrieve('messages', exchange, caller, id),
  },
  {
    ...MESSAGES,
    method: 'GET',
    path: '/v1/messages/batches/:id/results',
    summary: 'The results of a message batch',
    contentTypes: ['application/x-jsonl'],
    errorStatuses: [404],
    handle: (exchange, caller, { batches }, { id = '' }) => batches.results(exchange, caller, id),
  },
  {
    ...MESSAGES,
    method: 'POST',
    path: '/v1/messages/batches/:id/cancel',
    summary: 'Cancels a message batch',
    errorStatuses: [400, 404],
    repeats: 'never',
    handle: (exchange, caller, { batches }, { id = '' }) => batches.cancel('messages', exchange, caller, id),
  },
  {
    ...MESSAGES,
    method: 'DELETE',
    path: '/v1/messages/batches/:id',
    summary: 'Deletes a message batch that has ended',
    errorStatuses: [400, 404],
    handle: (exchange, caller, { batches }, { id = '' }) => batches.remove(exchange, caller, id),
  },
]

/** Batches of both APIs: `docs/batches.md: Batches`. */
export const BATCH_ENDPOINTS = BATCHES.map(withSharedFiles)

const LINES = { type: 'application/x-ndjson; charset=utf-8' } as const

/** Batches over the management API: `docs/batches.md: Over HTTP`. */
export const BATCH_MANAGEMENT_ENDPOINTS: readonly JsonEndpoint[] = [
  defineAccountEndpoint('GET', '/api/batches', {
    summary: "Batches: the account's own, or those of all users for administrators",
    errorStatuses: [400],
    query: batchesQuery,
    responseBody: pageSchema(managedBatchSchema),
    handle: ({ user, query, services }) => listBatches(services, query, user),
  }),
  defineAccountEndpoint('GET', '/api/batches/:id', {
    summary: 'A batch, with the first lines that have failed',
    errorStatuses: [404],
    params: batchPath,
    responseBody: batchDetailSchema,
    handle: ({ user, params, services }) => showBatch(services, params.id, user),
  }),
  defineAccountEndpoint('POST', '/api/batches/:id/cancel', {
    summary: 'Cancels a batch',
    errorStatuses: [400, 404],
    params: batchPath,
    responseBody: batchDetailSchema,
    handle: ({ user, params, services }) => cancelBatch(services, params.id, user),
  }),
  defineAccountEndpoint('GET', '/api/batches/:id/results', {
    summary: 'The results of an own batch that has ended, as JSON lines',
    errorStatuses: [404],
    params: batchPath,
    text: { ...LINES, filename: 'results.jsonl' },
    handle: ({ user, params, services }) => batchLines(services, params.id, 'results', user),
  }),
  defineAccountEndpoint('GET', '/api/batches/:id/errors', {
    summary: 'The failed lines of an own batch that has ended, as JSON lines',
    errorStatuses: [404],
    params: batchPath,
    text: { ...LINES, filename: 'errors.jsonl' },
    handle: ({ user, params, services }) => batchLines(services, params.id, 'errors', user),
  }),
]
