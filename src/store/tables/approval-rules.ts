// The table of approval rules. There are few, and all are read together.
import type { ApprovalTerms } from '../../model/approval-rules.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Row, Sql } from '../sql.ts';
import { objectOf, toJson } from './columns.ts';

export interface ApprovalRule extends ApprovalTerms {
  readonly id: string;
  readonly name: string;
  readonly props: JsonObject;
  /** Users for whom the rule's maker stood, by id, each with the number of the last way in that there was then. */
  readonly vouched: Readonly<Record<string, number>>;
  /** Number of approvers who were not there yet when it was made: it vouches for so many who come. */
  readonly awaits: number;
  readonly expiresAt: number | undefined;
  readonly createdAt: number;
  readonly createdBy: string;
  readonly updatedAt: number;
}

interface RuleRow extends Row {
  id: string;
  name: string;
  terms: string;
  props: string;
  vouched: string;
  awaits: number;
  expires_at: number | null;
  created_at: number;
  created_by: string;
  updated_at: number;
}

type RuleChange = Omit<ApprovalRule, 'createdAt' | 'createdBy'>;

export type ApprovalRuleTable = ReturnType<typeof approvalRuleTable>;

export function approvalRuleTable(sql: Sql) {
  return {
    /** Oldest first, those that have ended included. */
    list: (): readonly ApprovalRule[] =>
      sql.remember('approval_rules', 'all', () =>
        sql.all<RuleRow>('SELECT * FROM approval_rules ORDER BY seq').map(fromRow),
      ) ?? [],

    insert(rule: ApprovalRule): void {
      sql.run(
        `INSERT INTO approval_rules (id, name, terms, props, vouched, awaits, expires_at, created_at, created_by, updated_at)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        rule.id,
        rule.name,
        termsText(rule),
        toJson(rule.props),
        toJson({ ...rule.vouched }),
        rule.awaits,
        rule.expiresAt ?? null,
        rule.createdAt,
        rule.createdBy,
        rule.updatedAt,
      );
    },

    update(rule: RuleChange): void {
      sql.run(
        `UPDATE approval_rules SET name = ?, terms = ?, props = ?, vouched = ?, awaits = ?, expires_at = ?, updated_at = ?
          WHERE id = ?`,
        rule.name,
        termsText(rule),
        toJson(rule.props),
        toJson({ ...rule.vouched }),
        rule.awaits,
        rule.expiresAt ?? null,
        rule.updatedAt,
        rule.id,
      );
    },

    erase(id: string): void {
      sql.run('DELETE FROM approval_rules WHERE id = ?', id);
    },
  };
}

function termsText({ actions, objects, approvers, count, mode, window, breakers }: ApprovalTerms): string {
  return toJson({ actions, objects, approvers, count, mode, window, breakers });
}

function fromRow(row: RuleRow): ApprovalRule {
  return {
    // Cast: `termsText` wrote it.
    ...(objectOf(row.terms) as unknown as ApprovalTerms),
    id: row.id,
    name: row.name,
    props: objectOf(row.props),
    // Cast: this file wrote it.
    vouched: objectOf(row.vouched) as Record<string, number>,
    awaits: row.awaits,
    expiresAt: row.expires_at ?? undefined,
    createdAt: row.created_at,
    createdBy: row.created_by,
    updatedAt: row.updated_at,
  };
}
