import { ActionIcon, Button, Input, TextInput } from '@mantine/core'
import { IconPlus, IconTrash } from '@tabler/icons-react'
import { type ReactNode, useId } from 'react'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './name-value-rows.module.css'

/** A row of two fields. */
interface Pair {
  readonly name: string
  readonly value: string
}

/** Inputs for pairs of a name and a value, one pair in each row. */
export function NameValueRows({
  label,
  description,
  nameLabel,
  valueLabel,
  value: rows,
  onChange,
  error,
}: {
  readonly label: string
  readonly description?: string
  /** Labels of the two fields of a row. */
  readonly nameLabel: string
  readonly valueLabel: string
  readonly value: readonly Pair[]
  readonly onChange: (rows: Pair[]) => void
  readonly error?: ReactNode
}) {
  const { common } = useTexts()
  const id = useId()
  const change = (at: number, part: Partial<Pair>): void =>
    onChange(rows.map((row, index) => (index === at ? { ...row, ...part } : row)))
  return (
    <div role="group" aria-labelledby={id} className={classes['group']}>
      <Input.Label id={id} labelElement="div">
        {label}
      </Input.Label>
      {rows.map((row, at) => (
        // A row has no id, so its position is the React key.
        <div key={at} className={classes['row']}>
          <TextInput
            aria-label={nameLabel}
            placeholder={nameLabel}
            spellCheck={false}
            value={row.name}
            error={Boolean(error)}
            onChange={({ currentTarget: { value } }) => change(at, { name: value })}
          />
          <TextInput
            aria-label={valueLabel}
            placeholder={valueLabel}
            spellCheck={false}
            value={row.value}
            onChange={({ currentTarget: { value } }) => change(at, { value })}
          />
          <ActionIcon
            aria-label={common.removeRow}
            title={common.removeRow}
            onClick={() => onChange(rows.toSpliced(at, 1))}
          >
            <IconTrash size={16} />
          </ActionIcon>
        </div>
      ))}
      <Button
        variant="default"
        size="xs"
        leftSection={<IconPlus size={14} aria-hidden />}
        onClick={() => onChange([...rows, { name: '', value: '' }])}
      >
        {common.addRow}
      </Button>
      {description !== undefined && <Input.Description>{description}</Input.Description>}
      {error !== undefined && error !== null && <Input.Error>{error}</Input.Error>}
    </div>
  )
}
