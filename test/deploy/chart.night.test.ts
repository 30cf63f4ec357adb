import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { check, isWithout } from '../fixtures/checkers.ts'

const ROOT = join(import.meta.dirname, '../..')
const CHART = 'deploy/helm'
const SCHEMAS = 'test/deploy/schemas/{{.ResourceKind}}{{.KindSuffix}}.json'

/** The charts with golden files: what they are, and the arguments that choose it. */
const KINDS = {
  embedded: [],
  postgres: ['--values', `${CHART}/ci/postgres-values.yaml`],
} as const
type Kind = keyof typeof KINDS
const NAMES = Object.keys(KINDS) as Kind[]

/** A Kubernetes object, as far as tests read it. */
interface Resource {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> }
  readonly spec?: Spec
}

/** The parts of a StatefulSet and of a Job that tests read. */
interface Spec {
  readonly persistentVolumeClaimRetentionPolicy?: unknown
  readonly volumeClaimTemplates?: readonly unknown[]
  readonly backoffLimit?: number
  readonly activeDeadlineSeconds?: number
  readonly template: {
    readonly spec: {
      readonly terminationGracePeriodSeconds?: number
      readonly automountServiceAccountToken: boolean
      readonly restartPolicy?: string
      readonly securityContext: unknown
      readonly containers: readonly {
        readonly image: string
        readonly args?: readonly string[]
        readonly securityContext: unknown
      }[]
    }
  }
}

function rendered(kind: Kind): string {
  const { code, output } = check('helm', [
    'template',
    'gateway',
    CHART,
    '--kube-version',
    '1.34.0',
    ...KINDS[kind],
  ])
  expect(code, output).toBe(0)
  return output
}

function resources(kind: Kind): Resource[] {
  return parseAllDocuments(rendered(kind)).map((document) => document.toJS() as Resource)
}

function only(kind: Kind, wanted: string): Resource & { readonly spec: Spec } {
  const [found, ...others] = resources(kind).filter((one) => one.kind === wanted)
  expect(others).toEqual([])
  return found as Resource & { readonly spec: Spec }
}

function template(settings: readonly string[]) {
  return check('helm', [
    'template',
    'gateway',
    CHART,
    '--kube-version',
    '1.34.0',
    ...settings.flatMap((setting) => ['--set', setting]),
  ])
}

/** The message of the chart for values that it refuses. */
function refusal(...settings: readonly string[]): string {
  const { code, output } = template(settings)
  expect(code).not.toBe(0)
  return output
}

describe.skipIf(isWithout('helm', 'kubeconform'))('the chart', () => {
  test.each(NAMES)('helm lint finds no mistake: %s', (kind) => {
    const { code, output } = check('helm', ['lint', '--strict', CHART, ...KINDS[kind]])
    expect(code, output).toBe(0)
  })

  test.each(NAMES)('the Helm chart renders exactly the objects of its golden file: %s', (kind) => {
    // helm template gateway deploy/helm --kube-version 1.34.0 [--values …] > test/deploy/golden/KIND.yaml
    expect(rendered(kind)).toBe(readFileSync(join(ROOT, `test/deploy/golden/${kind}.yaml`), 'utf8'))
  })

  test.each(NAMES)(
    'every object that the Helm chart renders fits the Kubernetes schema of its kind: %s',
    (kind) => {
      const { code, output } = check(
        'kubeconform',
        ['-strict', '-summary', '-schema-location', SCHEMAS],
        rendered(kind),
      )
      expect(code, output).toBe(0)
      expect(output).toContain('Invalid: 0, Errors: 0, Skipped: 0')
    },
  )

  test('a Kubernetes object with a misspelt member is refused by the check against its schema', () => {
    const wrong = rendered('embedded').replace('replicas: 1', 'replicass: 1')
    expect(check('kubeconform', ['-strict', '-schema-location', SCHEMAS], wrong).code).not.toBe(0)
  })

  test('the chart gives each gateway a volume of its own that stays when the gateway is removed', () => {
    const { spec } = only('postgres', 'StatefulSet')
    expect(spec.persistentVolumeClaimRetentionPolicy).toEqual({ whenDeleted: 'Retain', whenScaled: 'Retain' })
    expect(spec.volumeClaimTemplates).toHaveLength(1)
    const drain = /`drain_timeout` \| `(\d+)s`/.exec(
      readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8'),
    )?.[1]
    expect(spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(Number(drain) + 5)
  })

  test('the network policy lets Prometheus in beside the callers or as one of them, as the notes say', () => {
    const { spec } = only('postgres', 'NetworkPolicy')
    const rules = (spec as unknown as { ingress: { ports: unknown; from: unknown }[] }).ingress
    const peers = ['apps', 'monitoring'].map((name) => [
      { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } } },
    ])
    expect(rules).toEqual(peers.map((from) => ({ ports: [{ protocol: 'TCP', port: 'http' }], from })))
    const monitored = ['existingSecret=s', 'serviceMonitor.enabled=true']
    const caller = 'networkPolicy.from[0].podSelector.matchLabels.a=b'
    expect(template([...monitored, caller]).code).toBe(0)
    // Helm renders notes only for a cluster.
    const notes = readFileSync(join(ROOT, CHART, 'templates/NOTES.txt'), 'utf8')
    expect(notes).toContain('only if it is listed there or in networkPolicy.metricsFrom')
  })

  test('the notes of the chart find the credentials in the log of whichever gateway printed them', () => {
    // Helm renders notes only for a cluster.
    const notes = readFileSync(join(ROOT, CHART, 'templates/NOTES.txt'), 'utf8')
    const command = /kubectl .* logs .*/.exec(notes)?.[0]
    expect(command).toContain('app.kubernetes.io/name=sluice,app.kubernetes.io/instance={{ .Release.Name }} ')
    expect(command).not.toContain('}}-0')
  })

  test('every pod runs without privileges, with a read-only root and without a service account token', () => {
    const pods = resources('postgres').filter(({ kind }) => ['StatefulSet', 'Job'].includes(kind))
    expect(pods).toHaveLength(2)
    for (const { spec } of pods) {
      if (!spec) throw new Error('a pod has no specification')
      const { securityContext, containers, automountServiceAccountToken } = spec.template.spec
      expect(automountServiceAccountToken).toBe(false)
      expect(securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      })
      for (const container of containers) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
        expect(container.image).toBe('registry.example/sluice:0.1.0')
      }
    }
  })

  test('the database schema is migrated once before an upgrade of the Helm release, and a failure stops the upgrade', () => {
    const job = only('postgres', 'Job')
    expect(job.metadata.annotations?.['helm.sh/hook']).toBe('pre-upgrade')
    expect(job.spec.backoffLimit).toBe(0)
    expect(job.spec.activeDeadlineSeconds).toBeGreaterThan(0)
    const { restartPolicy, containers } = job.spec.template.spec
    expect(restartPolicy).toBe('Never')
    expect(containers[0]?.args).toEqual(['schema'])
    expect(resources('embedded').filter(({ kind }) => kind === 'Job')).toEqual([])
  })

  test('Helm values that would lose money or never start are refused with a message that says what to do', () => {
    expect(refusal('replicas=2')).toContain('set database to postgres, with DATABASE_URL in existingSecret')
    expect(refusal('autoscaling.enabled=true')).toContain('need a shared database')
    expect(refusal('database=postgres')).toContain('database: postgres needs existingSecret')
    expect(refusal('env.GATEWAY_SECRET=text')).toContain('values don')
    expect(refusal('terminationGracePeriodSeconds=5')).toContain('terminationGracePeriodSeconds')
    expect(refusal('replicsa=2')).toContain("additional properties 'replicsa' not allowed")
  })

  test('the Helm chart has the version of the program', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    const text = readFileSync(join(ROOT, CHART, 'Chart.yaml'), 'utf8')
    expect(text).toContain(`\nversion: ${version}\nappVersion: ${version}\n`)
  })
})
