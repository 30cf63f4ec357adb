import { createHmac } from 'node:crypto'
import type { Response } from '@sluice/http1'
import { Pseudonyms } from '@sluice/screen/pseudonyms'
import { compileRule, type Rule } from '@sluice/screen/rule'
import { TextScreen } from '@sluice/screen/screen'
import type { Caller } from '../../accounts/authentication/caller.ts'
import {
  type Guard,
  type GuardVerdict,
  type ServiceGuard,
  type TextGuard,
  isServiceGuard,
} from '../../domain/guard.ts'
import type { Settings } from '../../domain/settings.ts'
import { parseVendorRoutes } from '../../domain/vendor-routes.ts'
import type { FailureLog } from '../../call/failure-log.ts'
import type { KeptAnswer } from '../../call/feature.ts'
import { chargeableGroups, groupNameForVendor } from '../../call/key-permissions.ts'
import { type RequestMemory, ResizableAllocation } from '../../limits/request-memory.ts'
import type { GuardFigures } from '../../telemetry/guard-figures.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { answeringModels, type Routes } from '../../call/routing.ts'
import { CallGuards, type ScreenMaker } from './call-guards.ts'
import { ActiveGuard } from './active-guard.ts'
import { KnownTexts } from './known-texts.ts'
import { GuardModerations, type OwnCalls } from './services/guard-moderations.ts'
import { ServiceClient } from './services/service-client.ts'
import type { Service } from './services/service.ts'
import { ServiceChecks, type CheckServices } from './services/service-checks.ts'
import { serviceOf } from './services/services.ts'

interface GuardServices extends CheckServices {
  /** Secret key with which placeholders for replaced values are created. */
  readonly key: Buffer
  readonly metrics: Metrics
  readonly figures: GuardFigures
}

/** Services of the gateway that guards need. */
export interface GuardFeatureServices {
  /** Secret key with which placeholders for replaced values are created. */
  readonly guardKey: Buffer
  readonly guardFigures: GuardFigures
  readonly metrics: Metrics
  readonly memory: RequestMemory
  readonly failureLog: FailureLog
  /** The calls that guards make themselves; not used before the first call of a client. */
  readonly ownCalls: () => OwnCalls
}

/** Creates the guards of the gateway. */
export function makeGuards(services: GuardFeatureServices): Guards {
  const { guardKey, guardFigures, metrics, memory, failureLog, ownCalls } = services
  const moderations = new GuardModerations({ memory }, ownCalls)
  return new Guards({
    key: guardKey,
    metrics,
    figures: guardFigures,
    memory,
    client: new ServiceClient(),
    moderate: (request) => moderations.moderate(request),
    onFailure: (guard, id, reason) =>
      failureLog.reportOther({ guard }, 'guard failed', id, reason, performance.now()),
  })
}

/** Finds the guards that apply to calls. `docs/guards.md: Scopes`. */
export class Guards {
  readonly #services: GuardServices
  readonly #random: () => number
  /**
   * Compiled rules of guards. A reload of the configuration replaces the guards, so their rules are compiled
   * again.
   */
  readonly #rules = new WeakMap<Guard, Rule>()
  readonly #known: KnownTexts
  readonly #asked = new WeakMap<Guard, Service>()
  /**
   * Screens (guards that search texts together) by the names and actions of their guards, for each version of
   * the configuration.
   */
  readonly #screens = new WeakMap<Settings, Map<string, TextScreen>>()

  /** `random` returns numbers in [0, 1), for guards that check only a sample of calls. */
  constructor(services: GuardServices, random: () => number = Math.random) {
    this.#services = services
    this.#known = new KnownTexts(services.memory)
    this.#random = random
  }

  /** Whether a guard may apply to calls of an API key, which depends on the model of each call. */
  concern(settings: Settings, caller: Caller): boolean {
    const groups = chargeableGroups(caller)
    return settings.guards.some(
      (guard) => isAdded(guard, settings, caller, groups) || fitsKey(guard, caller, groups),
    )
  }

  /**
   * Finds the guards of a call to the model `requested`, which any of the routes may serve; undefined if no
   * guard applies.
   */
  of(settings: Settings, caller: Caller, requested: string, routes: Routes): CallGuards | undefined {
    const { requestedModel, resolutions } = routes
    const models = [requested, requestedModel.name, ...resolutions.map(({ model }) => model.name)]
    const groups = resolutions.map(({ group }) => group.name)
    return this.for(settings, caller, models, groups)
  }

  /**
   * Finds the guards of a stored response that is read: those of all calls that its model may have answered, because
   * it may have stood in for the requested one; undefined if no guard applies.
   */
  ofKept({ settings, caller, id, model, group }: KeptAnswer): CallGuards | undefined {
    // Reading is free and goes by the response's own account, so routes that cannot be read do not prevent it.
    const routes = parseVendorRoutes(caller.token.vendor_routes) ?? new Map<string, string>()
    const models = [model, ...settings.models.declared]
      .map((requested) => answeringModels(settings, requested))
      .filter((answering) => answering.includes(model))
      .flat()
    const groups = models.map((name) => groupNameForVendor(caller, routes, settings.models.get(name).vendor))
    return this.for(settings, caller, models, [group, ...groups], id)
  }

  /**
   * Finds the guards of a call to these models, charged to one of these groups; undefined if no guard
   * applies. `read`: id of a stored response that is read; a guard with a sample then checks that response at
   * each read or never.
   */
  for(
    settings: Settings,
    caller: Caller,
    models: readonly string[],
    groups: readonly string[],
    read?: string,
  ): CallGuards | undefined {
    const applying = settings.guards.filter(
      (guard) =>
        (isAdded(guard, settings, caller, groups) || fits(guard, caller, models, groups)) &&
        (guard.sample === 1 || this.#drawn(guard, read) < guard.sample),
    )
    if (applying.length === 0) return undefined
    return this.#active(
      settings,
      caller,
      applying.map((guard) => new ActiveGuard(guard)),
      [],
    )
  }

  /** The guards of a call whose request they have checked, from what `CallGuards.suspend` returned. */
  resumed(settings: Settings, caller: Caller, suspended: string): CallGuards {
    const [decided, values] = JSON.parse(suspended) as [
      [string, GuardVerdict, number, boolean][],
      [string, string][],
    ]
    const active = decided.flatMap(([name, verdict, matches, hasRun]) => {
      const guard = settings.guards.find((one) => one.name === name)
      if (!guard) return []
      const one = new ActiveGuard(guard)
      if (hasRun) one.note(verdict, matches)
      return [one]
    })
    const resumed = this.#active(settings, caller, active, values)
    resumed.ofRequest = resumed.text
    return resumed
  }

  #active(
    settings: Settings,
    caller: Caller,
    active: readonly ActiveGuard[],
    values: readonly (readonly [string, string])[],
  ): CallGuards {
    const pseudonyms = new Pseudonyms({ key: this.#services.key, user: String(caller.user.id) })
    pseudonyms.know(values)
    const known = this.#known.of({ client: caller.user.id, key: caller.token.id })
    const asked = active.flatMap((one) =>
      isServiceGuard(one.guard) ? [{ active: one, service: this.#serviceOf(one.guard) }] : [],
    )
    const services =
      asked.length === 0
        ? undefined
        : new ServiceChecks(asked, { services: this.#services, settings, caller, pseudonyms })
    return new CallGuards(active, pseudonyms, known, (rules) => this.#screenOf(settings, rules), services)
  }

  /**
   * Counts the values that are put back into the answer of a call as memory of its caller, until the client has
   * read the answer.
   */
  countRestored({ pseudonyms }: CallGuards, { user, token }: Caller, response: Response): void {
    const held = new ResizableAllocation(this.#services.memory, { client: user.id, key: token.id })
    let isReleased = false
    response.onClosed(() => {
      isReleased = true
      held.release()
    })
    pseudonyms.hold = (bytes) => !isReleased && !response.isAborted && held.take(bytes)
  }

  /** Closes the connections to services. */
  close(): void {
    void this.#services.client.close()
  }

  /** A number in [0, 1): random, or, if there is an id, always the same for that guard and id. */
  #drawn({ name }: Guard, id: string | undefined): number {
    if (id === undefined) return this.#random()
    return createHmac('sha256', this.#services.key).update(`${name} ${id}`).digest().readUInt32BE() / 2 ** 32
  }

  /**
   * Adds the verdicts of an ended call to the metrics, and to the figures that the console shows about
   * guards.
   */
  ended(guards: CallGuards): void {
    const { metrics, figures } = this.#services
    for (const { guard, verdict, matches, hasRun, tookMs } of guards.all) {
      if (!hasRun) continue
      metrics.add('guardVerdicts', 1, guard.name, verdict)
      figures.note(guard.name, { verdict, matches, delayMs: tookMs })
    }
  }

  #screenOf(settings: Settings, rules: Parameters<ScreenMaker>[0]): TextScreen {
    let screens = this.#screens.get(settings)
    if (!screens) this.#screens.set(settings, (screens = new Map()))
    const key = rules.map(({ guard, do: action }) => `${guard.name} ${action}`).join(',')
    let screen = screens.get(key)
    if (!screen) {
      screen = new TextScreen(
        rules.map(({ guard, do: action }) => ({ rule: this.#ruleOf(guard), do: action, with: guard.with })),
      )
      screens.set(key, screen)
    }
    return screen
  }

  #serviceOf(guard: ServiceGuard): Service {
    let service = this.#asked.get(guard)
    if (!service) this.#asked.set(guard, (service = serviceOf(guard.match)))
    return service
  }

  #ruleOf(guard: TextGuard): Rule {
    let rule = this.#rules.get(guard)
    if (!rule) this.#rules.set(guard, (rule = compileRule(guard.name, guard.match)))
    return rule
  }
}

/** Whether the API key or one of the groups has a guard in its own list. */
function isAdded({ name }: Guard, settings: Settings, { token }: Caller, groups: readonly string[]): boolean {
  return (
    token.guards.includes(name) || groups.some((group) => settings.groups.get(group)?.guards.includes(name))
  )
}

function fits(guard: Guard, caller: Caller, called: readonly string[], charged: readonly string[]): boolean {
  const { models } = guard
  return (!models || models.some((name) => called.includes(name))) && fitsKey(guard, caller, charged)
}

function fitsKey(
  { groups, users, tokens }: Guard,
  { token, user }: Caller,
  charged: readonly string[],
): boolean {
  return (
    (!groups || groups.some((name) => charged.includes(name))) &&
    (!users || users.includes(user.username)) &&
    (!tokens || tokens.includes(token.name))
  )
}
