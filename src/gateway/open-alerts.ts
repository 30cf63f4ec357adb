import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { Alerts } from '../alerts/alerts.ts'
import type { LastDeliveries } from '../alerts/last-deliveries.ts'
import {
  HourlyReports,
  implausibleUsageKey,
  type ImplausibleUsage,
  type UnpricedTool,
  unpricedToolKey,
  type WithheldTool,
  withheldToolKey,
} from '../alerts/hourly-reports.ts'
import type { OpenedLedger } from './open-ledger.ts'
import type { RefusedConfiguration, Settings } from '../domain/settings.ts'
import type { Overload } from '../limits/overload.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { type Secrets, hmacOf } from '../store/secrets.ts'
import type { ChannelHealth } from '../upstreams/channel-health.ts'
import type { ChannelMinutes } from '../upstreams/channel-minutes.ts'
import type { KeyRings } from '../upstreams/key-ring.ts'
import type { ModelRetirements } from '../upstreams/model-retirements.ts'
import type { ProviderLimits } from '../upstreams/provider-limits.ts'
import { aboutChannels } from './channel-events.ts'
import { nodeName } from './node-name.ts'
import { announcedRetirements } from './open-model-retirements.ts'

/** The facts of calls that alerts report once an hour. */
export interface CallFindings {
  readonly unpriced: HourlyReports<UnpricedTool>
  readonly implausible: HourlyReports<ImplausibleUsage>
  readonly withheldTools: HourlyReports<WithheldTool>
}

/** Creates the collections of what calls have shown. */
export function createCallFindings(): CallFindings {
  return {
    unpriced: new HourlyReports(unpricedToolKey),
    implausible: new HourlyReports(implausibleUsageKey),
    withheldTools: new HourlyReports(withheldToolKey, ({ server }) => server),
  }
}

/** Parts of the gateway that are watched for alerts. */
interface AlertServices extends CallFindings {
  readonly settings: () => Settings
  readonly refusedConfig: () => RefusedConfiguration | undefined
  readonly health: ChannelHealth
  readonly keyRings: KeyRings
  readonly minutes: ChannelMinutes
  readonly overload: Overload
  readonly metrics: Metrics
  readonly providerLimits: ProviderLimits
  readonly deliveries: LastDeliveries
  readonly ends: ModelRetirements
  readonly log: Logger
}

/** A hash that identifies an alert receiver without revealing its URL. */
export function receiverTag(secrets: Secrets, url: string): string {
  return hmacOf(secrets, 'alert receiver', url)
}

/**
 * Starts watching for alerts and delivering them. Called before calls are served, so that no alert is missed.
 */
export function openAlerts(
  accounts: OpenedLedger,
  secrets: Secrets,
  {
    settings,
    refusedConfig,
    health,
    keyRings,
    minutes,
    overload,
    metrics,
    unpriced,
    implausible,
    withheldTools,
    providerLimits,
    deliveries,
    ends,
    log,
  }: AlertServices,
): Promise<Alerts> {
  const { store, others, node, ledger } = accounts
  return Alerts.open({
    rows: store,
    settings,
    // A gateway without other nodes always has the same name, so that it continues the alerts of its last
    // run.
    node: others ? randomUUID() : 'alone',
    nodeName: nodeName(node),
    storageFailure: () => ledger.writes.storage.failure,
    tag: (url) => receiverTag(secrets, url),
    opened: () => health.opened(),
    withoutKey: () =>
      keyRings.rests.isEmpty
        ? []
        : settings()
            .channels.filter((channel) => keyRings.rests.faultOf(channel))
            .map(({ name }) => name),
    about: (channels) => aboutChannels({ settings, keyRings, minutes }, channels),
    shed: () => overload.shed,
    unpriced,
    implausible,
    withheldTools,
    ending: () => announcedRetirements(ends, settings()),
    lowLimits: providerLimits.low,
    refusedConfig,
    deliveries,
    count: (result, count) => metrics.add('alerts', count, result),
    log,
  })
}
