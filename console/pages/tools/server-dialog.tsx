import { Select, Stack, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQueryClient } from '@tanstack/react-query'
import { MCP_APPROVALS, MCP_VERSIONS } from '../../../src/domain/mcp.ts'
import { durationText } from '../../../src/domain/units.ts'
import { type McpServer, type McpServerFields, saveMcpServer } from '../../api/tools.ts'
import { FormChange, FormDialog } from '../../components/form-dialog.tsx'
import { FormActions } from '../../components/form-actions.tsx'
import { NameValueRows } from '../../components/name-value-rows.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useMergedEdit } from '../../components/use-merged-edit.tsx'
import { type Texts, useTexts } from '../../locales/use-texts.tsx'

interface Pair {
  readonly name: string
  readonly value: string
}

interface Typed {
  readonly name: string
  readonly url: string
  readonly era: string
  readonly auth: string
  readonly headers: Pair[]
  readonly token_url: string
  readonly client_id: string
  readonly client_secret: string
  readonly scope: string
  readonly timeout: string
  readonly list_ttl: string
  readonly most_answer: string
  readonly call: string
  readonly prices: Pair[]
  readonly requests: string
  readonly window: string
  readonly approve: string
}

/** What the form changes; a new server has none of it. */
type Present = Partial<McpServer> & { readonly version: string }

/** A server: its address and credentials, prices and limits. */
export function ServerDialog({
  server,
  onClose,
}: {
  /** Undefined for a new server. */
  readonly server: McpServer | undefined
  readonly onClose: () => void
}) {
  const { tools: t, common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const isLocked = server?.managed === true
  const object: Present = server ?? { version: '' }
  const form = useForm<Typed>({
    mode: 'controlled',
    initialValues: typedOf(object),
    validate: {
      name: (text) => (text.trim() === '' ? common.required : null),
      url: (text) => (text.trim() === '' ? common.required : null),
    },
  })
  const edit = useMergedEdit<Typed, Present>({
    form,
    object,
    typedOf,
    labels: labelsOf(t),
    words: { auth: t.auths, era: { auto: t.automatic }, approve: t.approvals },
    async save(typed, version) {
      const fields = { ...fieldsOf(typed), ...(server && { version }) }
      const now = await saveMcpServer(fields, server === undefined)
      onClose()
      return now
    },
    reload: () => client.invalidateQueries({ queryKey: [profile.id, 'mcp'] }),
    saved: ({ name }) => t.saved(name.trim()),
  })
  const text = (field: Exclude<keyof Typed, 'headers' | 'prices'>, label: string, description?: string) => (
    <TextInput
      label={label}
      {...(description !== undefined && { description })}
      spellCheck={false}
      disabled={isLocked}
      {...form.getInputProps(field)}
    />
  )
  const rows = (field: 'headers' | 'prices', label: string, nameLabel: string, valueLabel: string) =>
    !isLocked && (
      <NameValueRows
        label={label}
        nameLabel={nameLabel}
        valueLabel={valueLabel}
        value={form.values[field]}
        onChange={(pairs) => form.setFieldValue(field, pairs)}
      />
    )
  const { auth } = form.values
  return (
    <FormDialog
      opened
      closeOnEscape={!edit.isAsking}
      onClose={onClose}
      title={server?.name ?? t.addServer}
      size="lg"
    >
      <form noValidate onSubmit={form.onSubmit(edit.save)}>
        <FormChange isChanged={form.isDirty()} />
        <Stack gap="md">
          {isLocked && <p>{t.fromFile}</p>}
          {!server && text('name', t.server, t.serverHint)}
          {text('url', t.url)}
          <Select
            label={t.auth}
            data={(['none', 'header', 'oauth_client'] as const).map((value) => ({
              value,
              label: t.auths[value],
            }))}
            allowDeselect={false}
            disabled={isLocked}
            {...form.getInputProps('auth')}
          />
          {auth === 'header' && rows('headers', t.headers, t.header, t.value)}
          {auth === 'oauth_client' && (
            <>
              {text('token_url', t.tokenUrl)}
              {text('client_id', t.clientId)}
              {text('client_secret', t.clientSecret)}
              {text('scope', t.scope)}
            </>
          )}
          <Select
            label={t.era}
            data={[{ value: 'auto', label: t.automatic }, ...MCP_VERSIONS]}
            allowDeselect={false}
            disabled={isLocked}
            {...form.getInputProps('era')}
          />
          {text('call', t.priceOfCall, t.priceHint)}
          {rows('prices', t.pricesOfTools, t.tool, t.price)}
          <Select
            label={t.approve}
            description={t.approveHint}
            data={MCP_APPROVALS.map((value) => ({ value, label: t.approvals[value] }))}
            allowDeselect={false}
            disabled={isLocked}
            {...form.getInputProps('approve')}
          />
          {text('requests', t.requests, t.requestsHint)}
          {text('window', t.window)}
          {text('timeout', t.timeout)}
          {text('list_ttl', t.listTtl)}
          {text('most_answer', t.mostAnswer)}
          <RefusalMessage error={edit.error} />
        </Stack>
        {!isLocked && <FormActions label={common.save} isRunning={edit.isSaving} onCancel={onClose} />}
        {edit.conflict}
      </form>
    </FormDialog>
  )
}

function labelsOf(t: Texts['tools']): Readonly<Record<keyof Typed, string>> {
  return {
    name: t.server,
    url: t.url,
    era: t.era,
    auth: t.auth,
    headers: t.headers,
    token_url: t.tokenUrl,
    client_id: t.clientId,
    client_secret: t.clientSecret,
    scope: t.scope,
    timeout: t.timeout,
    list_ttl: t.listTtl,
    most_answer: t.mostAnswer,
    call: t.priceOfCall,
    prices: t.pricesOfTools,
    requests: t.requests,
    window: t.window,
    approve: t.approve,
  }
}

function typedOf(server: Present): Typed {
  return {
    name: server.name ?? '',
    url: server.url ?? '',
    era: server.declared_era ?? 'auto',
    auth: server.auth ?? 'none',
    headers: pairsOf(server.headers ?? {}),
    token_url: server.token_url ?? '',
    client_id: server.client_id ?? '',
    client_secret: server.client_secret ?? '',
    scope: server.scope ?? '',
    timeout: durationText(server.timeout ?? 60_000),
    list_ttl: durationText(server.list_ttl ?? 60_000),
    most_answer: String(server.most_answer ?? '10MiB'),
    call: server.price?.call ?? '0',
    prices: pairsOf(server.price?.tools ?? {}),
    requests: String(server.rate_limit?.requests ?? 0),
    window: durationText(server.rate_limit?.window ?? 60_000),
    approve: server.approve ?? 'first',
  }
}

function pairsOf(values: Readonly<Record<string, string>>): Pair[] {
  return Object.entries(values).map(([name, value]) => ({ name, value }))
}

function valuesOf(pairs: readonly Pair[]): Record<string, string> {
  const named = pairs.filter(({ name }) => name.trim() !== '')
  return Object.fromEntries(named.map(({ name, value }) => [name.trim(), value.trim()]))
}

/** The server in the form of gateway.yaml. */
function fieldsOf(typed: Typed): McpServerFields & { readonly name: string } {
  const { auth, headers, token_url, client_id, client_secret, scope } = typed
  return {
    name: typed.name.trim(),
    url: typed.url.trim(),
    era: typed.era,
    auth,
    ...(auth === 'header' && { headers: valuesOf(headers) }),
    ...(auth === 'oauth_client' && {
      token_url: token_url.trim(),
      client_id: client_id.trim(),
      client_secret: client_secret.trim(),
      ...(scope.trim() !== '' && { scope: scope.trim() }),
    }),
    timeout: typed.timeout.trim(),
    list_ttl: typed.list_ttl.trim(),
    most_answer: typed.most_answer.trim(),
    price: { call: typed.call.trim(), tools: valuesOf(typed.prices) },
    rate_limit: { requests: typed.requests.trim(), window: typed.window.trim() },
    approve: typed.approve,
  }
}
