import { ActionIcon, Button, Select, TextInput } from '@mantine/core'
import { IconPlus, IconTrash } from '@tabler/icons-react'
import { useState } from 'react'
import type { DeclaredSettings } from '../../api/options.ts'
import { type Texts, useTexts } from '../../locales/use-texts.tsx'
import { lineOfDeclaredEntry } from './line-of-declared-entry.ts'
import classes from './settings-page.module.css'

/** A model, and the text of its setting. */
interface Row {
  readonly name: string
  readonly text: string
}

type Value = string | readonly string[]

const DEFAULT_BALANCE = 'weight'

type Field = 'fallback' | 'context_fallback' | 'content_fallback' | 'successor' | 'balance' | 'cache'

/** Settings that are lists of models. */
const LISTS: ReadonlySet<Field> = new Set<Field>(['fallback', 'context_fallback', 'content_fallback'])

/**
 * A setting that has a value for each model: fallbacks, successor, balancing of channels, or how long answers
 * are cached. Models in gateway.yaml cannot be changed here.
 */
export function ModelSettingRows({
  field,
  value,
  declared,
  onChange,
}: {
  readonly field: Field
  /** A JSON object: values by model. */
  readonly value: string
  readonly declared: DeclaredSettings
  readonly onChange: (value: string) => void
}) {
  const { settings, common } = useTexts()
  const [rows, setRows] = useState(() => rowsIn(value))
  const label = settings.modelSettings[field]
  const change = (now: readonly Row[]): void => {
    setRows(now)
    onChange(jsonOf(now, field))
  }
  const set = (at: number, changes: Partial<Row>): void =>
    change(rows.map((row, index) => (index === at ? { ...row, ...changes } : row)))
  return (
    <div role="group" aria-label={label}>
      {rows.map(({ name, text }, at) => {
        const line = lineOfDeclaredEntry(declared, 'models', name, field)
        const isLocked = line !== undefined && JSON.parse(value)[name] !== undefined
        return (
          // A row has no id, so its position is the React key.
          <div key={at} className={classes['row']}>
            <TextInput
              aria-label={settings.model}
              placeholder={settings.model}
              disabled={isLocked}
              value={name}
              onChange={({ currentTarget }) => set(at, { name: currentTarget.value })}
            />
            {field === 'balance' ? (
              <Select
                aria-label={`${label} ${name}`}
                allowDeselect={false}
                disabled={isLocked}
                data={Object.entries(settings.balances).map(([choice, said]) => ({
                  value: choice,
                  label: said,
                }))}
                value={text}
                onChange={(chosen) => set(at, { text: chosen ?? text })}
              />
            ) : (
              <TextInput
                aria-label={`${label} ${name}`}
                placeholder={placeholderOf(field, settings)}
                disabled={isLocked}
                value={text}
                onChange={({ currentTarget }) => set(at, { text: currentTarget.value })}
              />
            )}
            <ActionIcon
              aria-label={common.removeRow}
              title={common.removeRow}
              disabled={isLocked}
              onClick={() => change(rows.toSpliced(at, 1))}
            >
              <IconTrash size={16} />
            </ActionIcon>
            {isLocked && <span className={classes['from']}>{settings.fromLine(declared.file, line)}</span>}
          </div>
        )
      })}
      <Button
        mt="xs"
        variant="default"
        size="xs"
        leftSection={<IconPlus size={14} aria-hidden />}
        onClick={() => setRows([...rows, { name: '', text: field === 'balance' ? DEFAULT_BALANCE : '' }])}
      >
        {settings.addModel[field]}
      </Button>
    </div>
  )
}

function placeholderOf(field: Field, settings: Texts['settings']): string {
  if (field === 'cache') return '10m'
  return LISTS.has(field) ? settings.fallbackModels : settings.model
}

function rowsIn(value: string): readonly Row[] {
  return Object.entries(JSON.parse(value) as Record<string, Value>).map(([name, one]) => ({
    name,
    text: typeof one === 'string' ? one : one.join(', '),
  }))
}

function jsonOf(rows: readonly Row[], field: Field): string {
  const named = rows
    .map(({ name, text }) => ({ name: name.trim(), text: text.trim() }))
    .filter(({ name, text }) => name !== '' && text !== '')
  return JSON.stringify(
    Object.fromEntries(named.map(({ name, text }) => [name, LISTS.has(field) ? listIn(text) : text])),
  )
}

function listIn(text: string): string[] {
  return text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')
}
