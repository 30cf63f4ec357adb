import { expect, test } from 'vitest'
import { OBJECT_KINDS } from '../../../src/domain/audit.ts'
import { auditFilterOf } from './audit-filter.ts'

test.each(OBJECT_KINDS)('the audit log is filtered by each kind of object: %s', (kind) => {
  expect(auditFilterOf({ period: 'all', kind }, 0, 'UTC').kind).toBe(kind)
})
