import { expect, test } from 'vitest'
import { withoutBasePath } from './base-path.ts'

test.each([
  ['/v1/models', '', '/v1/models'],
  ['/ai/v1/models?a=/ai/b', '/ai', '/v1/models?a=/ai/b'],
  ['/ai', '/ai', '/'],
  ['/ai?q=1', '/ai', '/?q=1'],
  ['/ai/', '/ai', '/'],
  ['/team/ai/login', '/team/ai', '/login'],
  ['/ai/healthz', '/ai', '/healthz'],
  ['/healthz', '/ai', '/healthz'],
  ['/readyz?verbose', '/ai', '/readyz?verbose'],
  ['/metrics', '/ai', '/metrics'],
  ['/healthz', '/healthz', '/healthz'],
  ['/v1/models', '/ai', undefined],
  ['/aim/v1/models', '/ai', undefined],
  ['/AI/v1/models', '/ai', undefined],
  ['/%61i/v1/models', '/ai', undefined],
  ['/x/ai/v1/models', '/ai', undefined],
  ['/', '/ai', undefined],
  ['*', '/ai', undefined],
])('%s with the base path "%s" is %s within the gateway', (url, basePath, inner) => {
  expect(withoutBasePath(url, basePath)).toBe(inner)
})
