import type { JsonSchema } from '@sluice/wire/field-check'
import type { CallEndpoint } from './endpoint.ts'

const COMMON = { area: 'relay', kind: 'raw', access: 'api-key', keyIn: 'bearer' } as const

function fileFormSchema(): JsonSchema {
  const properties = {
    file: { type: 'string', contentMediaType: 'application/octet-stream' },
    purpose: { type: 'string', enum: ['batch'] },
    'expires_after[anchor]': { type: 'string', enum: ['created_at'] },
    'expires_after[seconds]': { type: 'integer', minimum: 3_600 },
  }
  return { type: 'object', required: ['file', 'purpose'], properties }
}

/** The caller's files: `docs/batches.md: Files`. */
export const FILE_ENDPOINTS: readonly CallEndpoint[] = [
  {
    ...COMMON,
    method: 'POST',
    path: '/v1/files',
    summary: 'Uploads a file',
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
