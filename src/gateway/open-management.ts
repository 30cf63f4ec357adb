import { join } from 'node:path'
import { OidcSignIns } from '../accounts/authentication/oidc/oidc-sign-ins.ts'
import { Passwords } from '../accounts/authentication/passwords.ts'
import { SignIns } from '../accounts/authentication/sign-ins.ts'
import type { LastDeliveries } from '../alerts/last-deliveries.ts'
import type { Relay } from '../call/relay.ts'
import type { Environment } from '../config/environment.ts'
import type { LiveConfig } from '../config/live-config.ts'
import type { AdministrationServices } from '../management/services.ts'
import { hashAccessToken, type Secrets } from '../store/secrets.ts'
import type { Store } from '../store/store.ts'
import { answerNodes } from './answer-nodes.ts'
import { ImportPlanning } from './import-planning.ts'
import { nodeName } from './node-name.ts'
import { receiverTag } from './open-alerts.ts'

/** Services of calls that administration reads and changes. */
type Administered = Pick<
  AdministrationServices,
  | 'ledger'
  | 'apiKeys'
  | 'upstreams'
  | 'channels'
  | 'otherNodes'
  | 'batches'
  | 'mcpTools'
  | 'answers'
  | 'liveCalls'
  | 'modelEnds'
  | 'guardFigures'
  | 'content'
  | 'telemetry'
>

interface ManagementInputs extends Administered {
  readonly environment: Environment
  readonly store: Store
  readonly inForce: LiveConfig
  readonly relay: Relay
  /** The id of this node. */
  readonly nodeId: string
  readonly deliveries: LastDeliveries
  readonly warn: (sentence: string) => void
}

/** Makes what administration needs, and answers what other nodes ask about this one. */
export function openManagement(
  secrets: Secrets,
  { environment, inForce, relay, nodeId, deliveries, warn, ...administered }: ManagementInputs,
): AdministrationServices {
  const { store } = administered
  const { dataDir, databaseUrl, secret } = environment
  const management: AdministrationServices = {
    ...administered,
    dataDir,
    databaseUrl,
    secretFile: secret === undefined ? join(dataDir, 'secret') : undefined,
    passwords: new Passwords(),
    settings: () => inForce.settings,
    liveConfig: inForce,
    simulate: (caller, call) => relay.simulate(caller, call),
    node: nodeName(nodeId),
    running: relay.running,
    imports: new ImportPlanning(environment, () => inForce.file.texts),
    signIns: new SignIns(),
    oidc: new OidcSignIns({ store, secrets, options: () => inForce.settings.options, nowMs: Date.now, warn }),
    hashAccessToken: (accessToken) => hashAccessToken(secrets, accessToken),
    holdToRead: () => Promise.resolve(() => {}),
    endReads: () => {},
    alerts: { tag: (url) => receiverTag(secrets, url), deliveries },
    nowMs: () => Date.now(),
  }
  answerNodes(management)
  return management
}
