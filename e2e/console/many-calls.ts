import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { bucketOf } from '../../src/domain/latency.ts'
import {
  DIMENSION_COLUMNS,
  hasRouteColumns,
  HISTOGRAMS,
  NO_DIMENSION,
  SLOT_MS,
  USAGE_SUMS_KEY,
  SUM_KINDS,
} from '../../src/store/sum-kinds.ts'
import { deriveSecrets } from '../../src/store/secrets.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import { GATEWAY_SECRET } from '../../test/fixtures/program.ts'

const DAYS = 90
const DAY_MS = 86_400_000
const MODELS = 20
const CHANNELS = 10
/** A key of root without limits. */
const KEY = {
  user_id: 1,
  status: 1,
  created_time: 1_760_000_000,
  expired_time: -1,
  remain_quota: 0,
  unlimited_quota: true,
  model_limits_enabled: false,
  model_limits: '',
  allow_ips: null,
  group: '',
  vendor_routes: '',
} as const

/**
 * Adds keys of root and the calls of the last 90 days to the database of a stopped gateway: a row for each
 * call, and the sums that its settlement would have changed. The last call ended just now.
 */
export async function addManyCalls(
  dataDir: string,
  { keys, calls }: { readonly keys: number; readonly calls: number },
): Promise<void> {
  const path = join(dataDir, 'sluice.db')
  const store = await openSqliteStore({ path, secrets: deriveSecrets(GATEWAY_SECRET), onCallingThread: true })
  let firstKey = 0
  for (let n = 0; n < keys; n += 1) {
    const { id } = await store.write('createToken', {
      ...KEY,
      name: `team ${n % 97} key ${n}`,
      key: `many${n}`,
    })
    firstKey ||= id
  }
  await store.close()
  const file = new DatabaseSync(path)
  file.exec('pragma synchronous = off; begin')
  const nowMs = Date.now()
  const apart = (DAYS * DAY_MS) / calls
  file.exec(`
    with recursive n(i) as (select 0 union all select i + 1 from n where i < ${calls - 1}),
      calls as (select i, cast(${nowMs - DAYS * DAY_MS} + (i + 1) * ${apart} as integer) - 2000 as began from n)
    insert into usage_log (id, ended_ms, user_id, token_id, model, requested_model, upstream_model, channel, group_name,
      input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens,
      web_searches, quota, price_version, duration_ms, first_byte_ms, stream, reason, kind)
    select printf('%08x-%04x-7000-8000-%012x', began / 65536, began % 65536, i), began + 1500, 1, ${firstKey} + i * 79 % ${keys},
      'model-' || (i % ${MODELS}), 'model-' || (i % ${MODELS}), 'model-' || (i % ${MODELS}), 'channel-' || (i / 7 % ${CHANNELS}), 'default',
      900, 100, 0, 0, 100, 0, 0, 1000 + i % 777, 'v1', 1500, 400, 1, 'complete', 'chat' from calls`)
  for (const sums of SUM_KINDS) {
    const { kind, unit, by } = sums
    const start = unit === 'slot' ? `ended_ms / ${SLOT_MS}` : `ended_ms / ${DAY_MS}`
    const dimensions = DIMENSION_COLUMNS.map((name) => (by.has(name) ? name : `'${NO_DIMENSION[name]}'`))
    const latencies = [1500, 400].map((ms) =>
      hasRouteColumns(sums) ? `'${bucketOf(ms)}:' || count(*) || ' '` : `''`,
    )
    file.exec(`
      insert into usage_sums (${[...USAGE_SUMS_KEY, ...HISTOGRAMS].join(', ')}, requests, quota, input_tokens, cache_read_tokens, output_tokens)
      select ${[kind, start, ...dimensions, ...latencies].join(', ')}, count(*), sum(quota), sum(input_tokens), sum(cache_read_tokens), sum(output_tokens)
      from usage_log where true group by ${[start, ...dimensions].join(', ')}`)
  }
  file.exec('commit')
  file.close()
}
